"""`--master`: where Spark runs, judged before anything is started."""

from __future__ import annotations

import argparse
import re

LOCAL = "local[*]"
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+:\d+(,.+:\d+)*|yarn|k8s://.+")


def spark_master(text: str) -> str:
    """Return the address of a master; Spark takes seconds to refuse one, with a stack of calls."""
    if _MASTER.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Spark master: local[N], spark://HOST:PORT, yarn or k8s://URL"
        )
    return text

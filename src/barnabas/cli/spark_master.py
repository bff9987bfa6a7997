"""`--master`: where Spark runs, checked before anything is started."""

from __future__ import annotations

import argparse
import re

LOCAL = "local[*]"
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+:\d+(,.+:\d+)*|yarn|k8s://.+")


def spark_master(text: str) -> str:
    """Return a master's address; Spark itself takes seconds to reject one, with a stack trace."""
    if _MASTER.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Spark master: local[N], spark://HOST:PORT, yarn or k8s://URL"
        )
    return text

"""Commands as processes that get a signal at a moment which does not depend on time.

What sends it is in `signalling/sitecustomize.py`, which the interpreter of the command imports.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.system.standalone import DEADLINE_S, hear_interrupts, members

HOOK = Path(__file__).parent / "signalling"


class Ended(NamedTuple):
    """A command that has ended, with all that it had started."""

    code: int
    out: str
    err: str
    sent: int
    calls: int | None

    def closes_with(self, pattern: str) -> bool:
        """Return whether it said this last, on one of its streams."""
        last = ((text.splitlines() or [""])[-1] for text in (self.out, self.err))
        return any(re.fullmatch(pattern, line) is not None for line in last)


def run_with_signals(
    words: Sequence[str],
    told: Path,
    at: Sequence[int | str] = (),
    *,
    number: signal.Signals = signal.SIGINT,
    group: bool = False,
    patience_s: float = 1.0,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command, and send it a signal at each of the moments; its whole session must end."""
    told.unlink(missing_ok=True)
    signalling = {
        "number": number,
        "at": list(at),
        "told": str(told),
        "group": group,
        "patience": patience_s,
    }
    paths = [str(HOOK), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", *words],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": sys.executable,
            "SIGNALLING": json.dumps(signalling),
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
        deadline_s = time.monotonic() + DEADLINE_S
        while left := members(process.pid):
            assert time.monotonic() < deadline_s, left
            time.sleep(0.02)
    finally:
        for each in members(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait()
    lines = told.read_text().splitlines() if told.exists() else []
    calls = [int(line.split()[1]) for line in lines if line.startswith("calls ")]
    sent = sum(line.startswith("sent ") for line in lines)
    return Ended(process.returncode, out, err, sent, calls[0] if calls else None)

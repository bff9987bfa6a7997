"""SIGTERM ends a command in order."""

from __future__ import annotations

import os
import signal

from barnabas.cli.termination import ends_on_sigterm


def test_what_is_open_is_closed_and_nothing_is_raised() -> None:
    before = signal.getsignal(signal.SIGTERM)
    done = []
    with ends_on_sigterm():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
            done.append("not reached")
        finally:
            done.append("closed")
    assert done == ["closed"]
    assert signal.getsignal(signal.SIGTERM) is before

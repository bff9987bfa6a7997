"""What the engine on Spark does around a query; queries themselves are in tests/system."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.sql.spark_engine import _collected


def test_an_interrupt_does_not_wait_for_a_query() -> None:
    over = threading.Event()
    frame: Any = SimpleNamespace(toArrow=over.wait)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        _collected(frame)
    over.set()


def test_what_a_query_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    frame: Any = SimpleNamespace(toArrow=fail)
    with pytest.raises(ValueError, match="no such thing"):
        _collected(frame)

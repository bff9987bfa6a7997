"""SIGTERM, by which services are stopped: it ends a command in order, and is no failure."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM has come."""


@contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Leave what is inside when SIGTERM comes, through all that it has to close."""
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except Terminated:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated

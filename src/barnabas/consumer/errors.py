"""What only a consumer's caller can run into."""

from __future__ import annotations

from barnabas.errors import IllegalStateError
from barnabas.model.errors import BarnabasError


class WakeupError(BarnabasError):
    """Another thread called `wakeup` while this one polled."""


class ConcurrentUseError(IllegalStateError):
    """Two threads called one consumer at the same time."""

"""What shall go wrong between a client and its brokers, and when: the plans of `FaultProxy`.

A `Fault` waits for the nth request of an API and then does its deed to that request or to its
answer. Deciding is all that happens here; the proxy does the deeds.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

Deed = Literal["cut", "stall", "delay", "drop"]
"""End the connection; let nothing more through; hold the frame back; swallow the frame."""

Place = Literal["request", "answer"]


@dataclass(slots=True, eq=False)
class Fault:
    """One thing that shall go wrong, `times` times from the nth matching request on."""

    deed: Deed
    at: Place
    api_key: int | None
    """None: any API."""
    nth: int
    times: int
    after_bytes: int
    """How much of the frame (its size included) passes before a cut or a stall; -1: all of it."""
    delay_ms: float
    both_ways: bool
    """Whether a stall stops the other direction, too."""
    happened: threading.Event = field(default_factory=threading.Event)
    """Set when it happens for the first time; a test can wait for it."""
    seen: int = 0
    missed: int = 0
    """How many of its answers never came; as many later requests take their turn."""

    def takes(self, api_key: int) -> bool:
        """Count a request, and return whether it is one that this fault is for."""
        if self.api_key not in (None, api_key):
            return False
        self.seen += 1
        if self.nth <= self.seen < self.nth + self.times:
            return True
        if self.missed == 0:
            return False
        self.missed -= 1
        return True

    def passing(self, frame_bytes: int) -> int:
        """Return how many bytes of a frame pass."""
        return frame_bytes if self.after_bytes < 0 else min(self.after_bytes, frame_bytes)


class Faults:
    """The faults that are planned, in the order in which they were."""

    def __init__(self) -> None:
        self._planned: list[Fault] = []

    def plan(self, fault: Fault) -> None:
        """Add a fault; it counts requests from now on."""
        self._planned.append(fault)

    def clear(self) -> None:
        """Forget all faults."""
        self._planned.clear()

    def of_request(self, api_key: int) -> list[Fault]:
        """Return what shall happen to this request and to its answer."""
        return [fault for fault in list(self._planned) if fault.takes(api_key)]

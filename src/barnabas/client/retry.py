"""Whether to retry, and how long to wait first.

`verdict` classifies a failure; `Backoff` spaces the attempts: exponential, capped, and with jitter
so that a thousand clients of a restarting broker do not reconnect in the same millisecond.
Randomness is injected.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from barnabas.client.errors import NetworkError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError


class Verdict(Enum):
    """What to do about a failed attempt."""

    FAIL = "give up: the same request fails again"
    RETRY = "send it again"
    REFRESH = "refresh metadata, then send it again"


def verdict(failure: ErrorCode | BarnabasError) -> Verdict:
    """Return whether a failure is retriable, and whether metadata must be refreshed first."""
    if isinstance(failure, RequestError):
        failure = failure.code
    if isinstance(failure, ErrorCode):
        # NOT_CONTROLLER only says that the controller moved; Metadata says where it is now.
        if failure.stale_metadata or failure is ErrorCode.NOT_CONTROLLER:
            return Verdict.REFRESH
        return Verdict.RETRY if failure.retriable else Verdict.FAIL
    if isinstance(failure, NetworkError):
        return Verdict.REFRESH
    return Verdict.RETRY if failure.retriable else Verdict.FAIL


class Backoff:
    """Pauses: `initial_ms`, doubled each time up to `max_ms`, plus or minus `jitter`."""

    __slots__ = ("initial_ms", "jitter", "max_ms", "random")

    def __init__(
        self,
        random: Callable[[], float],
        *,
        initial_ms: float = 100,
        max_ms: float = 1000,
        jitter: float = 0.2,
    ) -> None:
        self.random = random
        self.initial_ms = initial_ms
        self.max_ms = max_ms
        self.jitter = jitter

    def delay_ms(self, failures: int) -> float:
        """Return the pause after this many failures in a row (the first failure is 1)."""
        assert failures >= 1
        # The exponent is bounded: 2.0 ** 2000 overflows long after the cap has been reached.
        base = min(self.initial_ms * 2.0 ** min(failures - 1, 40), self.max_ms)
        return base * (1 + self.jitter * (2 * self.random() - 1))

"""Failures are read right, and attempts are spaced."""

from __future__ import annotations

import pytest

from barnabas.client.errors import ConnectError, RequestTimeoutError, UnsupportedApiError
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError, StorageError


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.REFRESH),
        (ErrorCode.NOT_CONTROLLER, Verdict.REFRESH),
        (ErrorCode.REQUEST_TIMED_OUT, Verdict.RETRY),
        (ErrorCode.MESSAGE_TOO_LARGE, Verdict.FAIL),
        (RequestError(ErrorCode.LEADER_NOT_AVAILABLE), Verdict.REFRESH),
        (RequestError(ErrorCode.INVALID_CONFIG), Verdict.FAIL),
        (ConnectError("refused"), Verdict.REFRESH),
        (RequestTimeoutError("late"), Verdict.REFRESH),
        (UnsupportedApiError("old"), Verdict.FAIL),
        (StorageError("full"), Verdict.RETRY),
    ],
)
def test_verdicts(failure: ErrorCode | BarnabasError, expected: Verdict) -> None:
    assert verdict(failure) is expected


def test_pauses_double_up_to_the_cap() -> None:
    backoff = Backoff(lambda: 0.5, initial_ms=100, max_ms=1000)
    assert [backoff.delay_ms(failures) for failures in (1, 2, 3, 4, 5, 5000)] == [
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]


def test_jitter_spreads_evenly_around_the_pause() -> None:
    lowest = Backoff(lambda: 0.0, jitter=0.2).delay_ms(1)
    highest = Backoff(lambda: 1.0, jitter=0.2).delay_ms(1)
    assert (lowest, highest) == (pytest.approx(80), pytest.approx(120))

"""The token bucket of controller mutations."""

from __future__ import annotations

import pytest

from barnabas.quotas.sampled_rate import Windows
from barnabas.quotas.token_bucket import UNLIMITED, TokenBucket


def test_one_request_may_overdraw_it() -> None:
    """It starts full, and the debt is paid off at the limit."""
    bucket = TokenBucket(Windows(), 2)
    assert bucket.tokens(0) == 22
    bucket.take(30, 0)
    assert bucket.tokens(0) == -8
    assert [bucket.throttle_ms(now_ms) for now_ms in (0, 3999, 4000)] == [4000, 1, 0]
    assert bucket.tokens(4000) == pytest.approx(0)


def test_it_holds_no_more_than_all_windows() -> None:
    """A long rest fills it, and no more."""
    bucket = TokenBucket(Windows(), 2)
    bucket.take(10, 5)
    assert bucket.tokens(1_000_000) == 22


def test_a_new_limit_keeps_the_tokens() -> None:
    """A smaller bucket spills; a limit where there was none starts with a full one."""
    bucket = TokenBucket(Windows(), 2)
    bucket.take(20, 0)
    bucket.set_limit(4, 0)
    assert bucket.tokens(0) == 2
    bucket.set_limit(0.1, 0)
    assert bucket.tokens(0) == 1.1
    bucket.set_limit(UNLIMITED, 0)
    bucket.take(1000, 0)
    assert bucket.throttle_ms(0) == 0
    bucket.set_limit(1, 500)
    assert bucket.tokens(500) == 11

"""A token is fetched once, refreshed when the options say, and used while it is valid."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.client.errors import AuthenticationFailedError, ConnectError
from barnabas.client.sasl.bearer_token import BearerToken
from barnabas.client.sasl.cached_token import REPEAT_MS, CachedToken, RefreshRules, RetryRules
from barnabas.simulation.world import World

DEFAULT = RefreshRules(0.8, 0.05, 60, 300)
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("rules", "starts_ms", "ends_ms", "random", "refresh_ms"),
    [
        (DEFAULT, 0, HOUR_MS, 0.0, 2_880_000),
        (DEFAULT, 0, HOUR_MS, 1.0, 3_060_000),
        (DEFAULT, None, HOUR_MS, 0.0, 2_880_000),
        (DEFAULT, -HOUR_MS, HOUR_MS, 0.0, 2_160_000),
        (DEFAULT, -10 * HOUR_MS, HOUR_MS, 0.0, 60_000),  # not before the minimum
        (DEFAULT._replace(buffer_s=1800), 0, HOUR_MS, 0.0, 1_800_000),  # not within the buffer
        (DEFAULT, 0, 100_000, 0.0, 80_000),  # too short for minimum and buffer
    ],
)
def test_when_a_token_is_refreshed(
    rules: RefreshRules, starts_ms: int | None, ends_ms: int, random: float, refresh_ms: int
) -> None:
    token = BearerToken("t", starts_ms, ends_ms)
    assert rules.refresh_ms(token, 0, random) == refresh_ms


class Issuer:
    """Issues t1, t2, … or fails."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.calls = 0
        self.failures: list[Exception] = []

    def fetch(self) -> BearerToken:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return BearerToken(f"t{self.calls}", self.now_ms, self.now_ms + HOUR_MS)

    def cached(self, retry_ms: int = 0) -> CachedToken:
        retry = RetryRules(100, retry_ms)
        return CachedToken(
            self.fetch, DEFAULT, retry, lambda: self.now_ms, lambda: 0.0, {"poolId": "p"}
        )


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with World(seed=1) as world:
        return world.run(work, until=120)


def test_a_token_is_kept_until_it_is_to_be_refreshed() -> None:
    issuer = Issuer()

    async def use() -> list[str]:
        cached = issuer.cached()
        assert cached.extensions() == {"poolId": "p"}
        used = list(await asyncio.gather(*(cached.token() for _ in range(5))))
        for now_ms in (0, 2_879_999, 2_880_000, 2_880_001):
            issuer.now_ms = now_ms
            used.append(await cached.token())
        return used

    assert run(use()) == ["t1"] * 7 + ["t2"] * 2
    assert issuer.calls == 2


@pytest.mark.parametrize("failure", [AuthenticationFailedError("no"), ConnectError("away")])
def test_a_valid_token_is_used_while_no_other_can_be_had(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    issuer = Issuer()

    async def use() -> list[str]:
        cached = issuer.cached()
        used = [await cached.token()]
        issuer.now_ms = 2_880_000
        issuer.failures = [failure] * 2  # the endpoint is asked twice when it is away
        used.append(await cached.token())
        issuer.failures = []
        issuer.now_ms += REPEAT_MS - 1
        used.append(await cached.token())
        issuer.now_ms += 1
        used.append(await cached.token())
        return used

    used = run(use())
    assert used[:3] == ["t1"] * 3
    assert used[3] != "t1"
    assert "bearer token not refreshed, the old one is used" in caplog.text


def test_an_expired_token_is_not_used() -> None:
    issuer = Issuer()

    async def use() -> None:
        cached = issuer.cached()
        await cached.token()
        issuer.now_ms = HOUR_MS
        issuer.failures = [AuthenticationFailedError("no")]
        await cached.token()

    with pytest.raises(AuthenticationFailedError, match="no"):
        run(use())


def test_an_endpoint_that_is_away_is_asked_again_with_growing_pauses() -> None:
    issuer = Issuer()
    issuer.failures = [ConnectError("away")] * 4

    async def use() -> tuple[str, float]:
        began_s = asyncio.get_running_loop().time()
        token = await issuer.cached(retry_ms=10_000).token()
        return token, asyncio.get_running_loop().time() - began_s

    token, took_s = run(use())
    assert token == "t5"
    assert took_s == pytest.approx(0.1 + 0.2 + 0.4 + 0.8, abs=0.1)


def test_asking_ends_after_all_the_time_and_at_once_when_refused() -> None:
    issuer = Issuer()
    issuer.failures = [ConnectError("away")] * 100

    async def use() -> float:
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(ConnectError, match="away"):
            await issuer.cached(retry_ms=1_000).token()
        return asyncio.get_running_loop().time() - began_s

    assert run(use()) == pytest.approx(1.0, abs=0.1)
    issuer.calls, issuer.failures = 0, [AuthenticationFailedError("no")] * 2

    async def refused() -> None:
        await issuer.cached(retry_ms=1_000).token()

    with pytest.raises(AuthenticationFailedError, match="no"):
        run(refused())
    assert issuer.calls == 1

"""Everything that was asked about has an outcome: an answer, or the last failure that it met."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.admin.failures import coded
from barnabas.admin.settling import settle, settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ConnectionLostError, UnsupportedApiError
from barnabas.model.errors import RemoteProtocolError, RequestError
from barnabas.model.request_errors import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    NetworkExceptionError,
    UnknownError,
    UnsupportedVersionError,
)


def settled(rounds: list[dict[str, Any] | Exception], timeout_ms: float = 60_000) -> Any:
    """Settle keys a, b, c; each attempt gets the outcomes of one round. Also return the asked."""
    asked: list[list[str]] = []

    async def ask(keys: list[str]) -> dict[str, Any]:
        asked.append(keys)
        outcome = rounds.pop(0) if len(rounds) > 1 else rounds[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def conversation() -> Any:
        client = ClusterClient("127.0.0.1:1", retry_backoff_ms=(1, 1))
        return await settle(client, ["a", "b", "a", "c"], ask, timeout_ms=timeout_ms)

    return asyncio.run(conversation()), asked


def test_only_what_is_open_is_asked_again() -> None:
    refused, passing = GroupIdNotFoundError("no"), CoordinatorLoadInProgressError("wait")
    outcomes, asked = settled([{"a": 1, "b": passing, "c": refused}, {"b": 2}])
    assert list(outcomes.items()) == [("a", 1), ("b", 2), ("c", refused)]
    assert asked == [["a", "b", "c"], ["b"]]


def test_when_time_is_up_the_last_failure_is_the_outcome() -> None:
    passing = CoordinatorLoadInProgressError("wait")
    outcomes, _ = settled([{"a": 1, "b": passing, "c": 3}], timeout_ms=20)
    assert outcomes == {"a": 1, "b": passing, "c": 3}
    with pytest.raises(CoordinatorLoadInProgressError):
        settled_or_raise(outcomes)


def test_what_the_broker_leaves_out_is_a_failure() -> None:
    outcomes, _ = settled([{"a": 1, "c": 3}])
    assert isinstance(outcomes["b"], UnknownError)
    assert str(outcomes["b"]) == "b: missing in the broker's response"


def test_a_question_that_never_gets_through_is_raised() -> None:
    with pytest.raises(UnsupportedApiError):
        settled([UnsupportedApiError("too old")])


def test_a_question_that_fails_half_way_keeps_what_is_known() -> None:
    passing = CoordinatorLoadInProgressError("wait")
    outcomes, _ = settled([{"a": 1, "b": passing, "c": 3}, UnsupportedApiError("moved")])
    assert outcomes["a"] == 1
    assert isinstance(outcomes["b"], RequestError)


def test_failures_of_the_way_get_codes() -> None:
    assert isinstance(coded(ConnectionLostError("gone")), NetworkExceptionError)
    assert isinstance(coded(UnsupportedApiError("old")), UnsupportedVersionError)
    assert isinstance(coded(RemoteProtocolError("odd")), UnknownError)

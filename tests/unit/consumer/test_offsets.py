"""Questions to leaders: what they refuse and what they forget is told with partition and broker."""

from __future__ import annotations

import pytest
from tests.unit.consumer.scripted import P, Scripted, simulate

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff
from barnabas.consumer.offsets import FoundOffset, Lookups
from barnabas.errors import KafkaTimeoutError, UnknownError
from barnabas.model.ids import LATEST


def ask(brokers: Scripted, timeout_ms: float = 5000) -> FoundOffset:
    """Ask for the end of the one partition."""

    async def main() -> FoundOffset:
        async with (
            brokers,
            ClusterClient(brokers.bootstrap, retry_backoff_ms=(1, 1)) as client,
        ):
            await client.refresh(["t"])
            lookups = Lookups(
                client,
                committed=False,
                backoff=Backoff(lambda: 0.5, initial_ms=1, max_ms=1),
                timeout_ms=timeout_ms,
            )
            return (await lookups.list_offsets({P: LATEST}))[P]

    return simulate(main())


def test_the_end_of_a_log() -> None:
    """The leader tells the offset after the last record."""
    brokers = Scripted()
    brokers.append(4)
    assert ask(brokers).offset == 4


def test_an_answer_that_forgets_a_partition() -> None:
    """It is an error with the names of both, not a wait for ever."""
    brokers = Scripted()
    brokers.forgetful = True
    with pytest.raises(UnknownError, match="t-0: missing in the response of broker 0"):
        ask(brokers)


def test_no_leader_in_time() -> None:
    """The time that it took and the reason are told."""
    brokers = Scripted()
    brokers.leader = -1
    with pytest.raises(KafkaTimeoutError, match=r"t-0: no response within 50 ms: .*no leader"):
        ask(brokers, timeout_ms=50)

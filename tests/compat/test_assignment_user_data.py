"""What a leader's assignor adds for each member arrives there, whoever leads and in any library."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.compat.group_members import SESSION_TIMEOUT_MS
from tests.compat.samples import until_deadline
from tests.compat.test_groups_barnabas import create

from barnabas import KafkaAdminClient, KafkaConsumer, TopicPartition
from barnabas.aio import AIOKafkaConsumer
from barnabas.assignment.contract import Decision, Member, PartitionCounts, Share
from barnabas.assignment.round_robin import RoundRobinAssignor

with warnings.catch_warnings():
    # kafka-python reads its message definitions in a way that Python 3.11 frowns at.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

pytestmark = pytest.mark.compat

PARTITIONS = 4


class Letters:
    """An assignor of our own contract: round robin, and a letter to each member."""

    name = "letters"
    is_cooperative = False

    def __init__(self) -> None:
        self.shares: list[tuple[Sequence[TopicPartition], bytes | None]] = []

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        return b"barnabas"

    def assign(self, partition_counts: PartitionCounts, members: Sequence[Member]) -> Decision:
        dealt = RoundRobinAssignor().assign(partition_counts, members)
        return {
            member.member_id: Share(
                dealt[member.member_id], _letter(len(members), member.member_id)
            )
            for member in members
        }

    def on_assignment(
        self, partitions: Sequence[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        self.shares.append((partitions, user_data))


class PythonLetters(RoundRobinPartitionAssignor):  # type: ignore[misc]  # it has no types
    """The same in kafka-python's words."""

    name = "letters"
    shares: list[tuple[Sequence[TopicPartition], bytes | None]]

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        dealt = super().assign(cluster, members)
        for member_id, assignment in dealt.items():
            assignment.user_data = _letter(len(dealt), member_id)
        return dealt

    @classmethod
    def on_assignment(cls, assignment: Any, generation: int) -> None:
        cls.shares.append((assignment.partitions(), assignment.user_data))


def _letter(members: int, member_id: str) -> bytes:
    return f"{members} members, for {member_id}".encode()


OPTIONS: dict[str, Any] = {
    "session_timeout_ms": SESSION_TIMEOUT_MS,
    "heartbeat_interval_ms": 50,
    "enable_auto_commit": False,
}


def _ours(bootstrap: str, group: str, topic: str) -> tuple[Any, Any]:
    assignor = Letters()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="ours",
        partition_assignment_strategy=[assignor],
        **OPTIONS,
    )
    return consumer, assignor


def _ours_with_their_assignor(bootstrap: str, group: str, topic: str) -> tuple[Any, Any]:
    assignor = type("TheirsHere", (PythonLetters,), {"shares": []})
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="borrower",
        partition_assignment_strategy=[assignor],
        **OPTIONS,
    )
    return consumer, assignor


def _kafka_python(bootstrap: str, group: str, topic: str) -> tuple[Any, Any]:
    assignor = type("Theirs", (PythonLetters,), {"shares": []})
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="theirs",
        partition_assignment_strategy=[assignor],
        **OPTIONS,
    )
    return consumer, assignor


Join = Callable[[str, str, str], tuple[Any, Any]]


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        (_ours, _ours),
        (_ours, _kafka_python),
        (_kafka_python, _ours),
        (_ours_with_their_assignor, _ours),
        (_ours, _ours_with_their_assignor),
    ],
)
def test_leader_and_follower_get_their_letters(
    quick_bootstrap: str, admin: KafkaAdminClient, name: str, leader: Join, follower: Join
) -> None:
    """Each gets its own, with the partitions that it says; the leader of the first round stays."""
    create(admin, name, PARTITIONS)
    first, told_first = leader(quick_bootstrap, f"group-of-{name}", name)
    try:
        for _ in until_deadline("the first member leads"):
            first.poll(timeout_ms=500)
            if told_first.shares:
                break
        letter = told_first.shares[-1][1]
        assert bytes(letter).startswith(b"1 members, for "), letter
        second, told_second = follower(quick_bootstrap, f"group-of-{name}", name)
        try:
            for _ in until_deadline("both share"):
                first.poll(timeout_ms=100)
                second.poll(timeout_ms=500)
                if told_second.shares and len(told_first.shares[-1][0]) == PARTITIONS // 2:
                    break
            for consumer, told in ((first, told_first), (second, told_second)):
                partitions, letter = told.shares[-1]
                assert len(list(partitions)) == PARTITIONS // 2
                owner = consumer.config["client_id"]
                assert bytes(letter).startswith(f"2 members, for {owner}-".encode()), letter
            assert told_first.shares[-1][1] != told_second.shares[-1][1]
        finally:
            second.close()
    finally:
        first.close()


def test_asyncio_members_get_their_letters(
    quick_bootstrap: str, admin: KafkaAdminClient, name: str
) -> None:
    """One leads, one follows, both on asyncio."""
    create(admin, name, PARTITIONS)

    async def members() -> None:
        told = [Letters(), Letters()]
        consumers = [
            AIOKafkaConsumer(
                name,
                bootstrap_servers=quick_bootstrap,
                group_id=f"group-of-{name}",
                client_id=f"aio{number}",
                partition_assignment_strategy=[assignor],
                **OPTIONS,
            )
            for number, assignor in enumerate(told)
        ]
        await consumers[0].start()
        try:
            assert told[0].shares[-1][1] is not None
            await consumers[1].start()
            try:
                for _ in until_deadline("both share"):
                    await consumers[0].getmany(timeout_ms=50)
                    await consumers[1].getmany(timeout_ms=50)
                    if all(len(each.shares[-1][0]) == PARTITIONS // 2 for each in told):
                        break
                for number, each in enumerate(told):
                    letter = each.shares[-1][1]
                    assert letter is not None
                    assert letter.startswith(f"2 members, for aio{number}-".encode()), letter
            finally:
                await consumers[1].stop()
        finally:
            await consumers[0].stop()

    asyncio.run(members())


@pytest.fixture
def admin(quick_bootstrap: str) -> Any:
    client = KafkaAdminClient(bootstrap_servers=quick_bootstrap)
    yield client
    client.close()

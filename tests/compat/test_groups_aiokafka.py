"""Consumer groups and transactions with aiokafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
    errors,
)
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.compat.group_members import SESSION_TIMEOUT_MS, Ledger, Place
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine on a loop of its own, with a deadline."""
    asyncio.run(asyncio.wait_for(test, 240))


async def create(bootstrap: str, topic: str, partitions: int = 1) -> list[Place]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    answer = await admin.create_topics([NewTopic(topic, partitions, 1)])
    assert [error[:2] for error in answer.topic_errors] == [(topic, 0)]
    await admin.close()
    return [(topic, number) for number in range(partitions)]


async def produce(bootstrap: str, wanted: list[Place], count: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        for number in range(count):
            for topic, partition in wanted:
                await producer.send(topic, value=b"%d" % number, partition=partition)
        await producer.flush()


class AioMember(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """A member that processes and commits in a task of its own."""

    def __init__(self, bootstrap: str, group: str, ledger: Ledger, name: str, topic: str) -> None:
        self.name = name
        self.ledger = ledger
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # One alone is to be given up, in no less time than a busy machine may need.
            session_timeout_ms=6000 if name == "silent" else SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=50,
            fetch_max_wait_ms=50,
            max_poll_interval_ms=60_000,
        )
        self._topic = topic
        self._leaving = False

    async def on_partitions_assigned(self, assigned: Any) -> None:
        if not self._leaving:  # it ends a join that is under way, and then goes
            self.ledger.assigned(self.name, [tuple(each) for each in assigned])

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self.ledger.revoked(self.name, [tuple(each) for each in revoked])

    async def start(self) -> None:
        self.consumer.subscribe([self._topic], listener=self)
        await self.consumer.start()

    async def stop(self) -> None:
        self._leaving = True
        self.ledger.vanished(self.name)  # before the others hear of it and share what it had
        await self.consumer.stop()

    async def step(self) -> None:
        polled = await self.consumer.getmany(timeout_ms=20)
        for partition, records in polled.items():
            for record in records:
                self.ledger.read(self.name, tuple(partition), record.offset)
        offsets = {partition: records[-1].offset + 1 for partition, records in polled.items()}
        if offsets:
            try:
                await self.consumer.commit(offsets)
            except (errors.CommitFailedError, errors.IllegalStateError):
                return  # it lost them meanwhile
            for partition, offset in offsets.items():
                self.ledger.has_committed(tuple(partition), offset)


async def drive(members: list[AioMember], until: Any, what: str) -> None:
    for _ in until_deadline(what):
        await asyncio.gather(*(member.step() for member in members))
        if until():
            return


@asynccontextmanager
async def member_of(*arguments: Any) -> AsyncIterator[AioMember]:
    member = AioMember(*arguments)
    await member.start()
    try:
        yield member
    finally:
        await member.stop()


def test_members_come_and_go(quick_bootstrap: str, name: str) -> None:
    async def test() -> None:
        wanted = await create(quick_bootstrap, name, 6)
        await produce(quick_bootstrap, wanted, 10)
        ledger, group = Ledger(), f"group-of-{name}"
        arguments = [(quick_bootstrap, group, ledger, f"member-{n}", name) for n in range(3)]
        async with member_of(*arguments[0]) as first:
            await drive([first], lambda: ledger.shares([first]) == [6], "one has all")
            async with member_of(*arguments[1]) as second, member_of(*arguments[2]) as third:
                all_three = [first, second, third]
                await drive(all_three, lambda: ledger.shares(all_three) == [2, 2, 2], "3 share")
            await drive([first], lambda: ledger.shares([first]) == [6], "one has all again")
            await produce(quick_bootstrap, wanted, 10)
            committed = dict.fromkeys(wanted, 20)
            await drive([first], lambda: ledger.committed == committed, "all is processed")
        assert ledger.has_read(wanted, 20)
        ledger.check()

    run(test())


def test_seven_members(quick_bootstrap: str, name: str) -> None:
    async def test() -> None:
        wanted = await create(quick_bootstrap, name, 8)
        await produce(quick_bootstrap, wanted, 10)
        ledger, group = Ledger(), f"group-of-{name}"
        members = [AioMember(quick_bootstrap, group, ledger, f"member-{n}", name) for n in range(7)]
        try:
            await asyncio.gather(*(member.start() for member in members))
            even = [1, 1, 1, 1, 1, 1, 2]
            await drive(members, lambda: ledger.shares(members) == even, "all have a share")
            committed = dict.fromkeys(wanted, 10)
            await drive(members, lambda: ledger.committed == committed, "all is processed")
        finally:
            await asyncio.gather(*(member.stop() for member in members))
        assert ledger.has_read(wanted, 10)
        ledger.check()

    run(test())


def test_a_member_that_falls_silent_loses_its_partitions_and_comes_back(
    quick_bootstrap: str, name: str
) -> None:
    """Its loop stands still for longer than its session, so not even heartbeats leave."""
    ledger, group = Ledger(), f"group-of-{name}"
    settled, frozen, taken_over, over = (threading.Event() for _ in range(4))
    failures: list[BaseException] = []

    async def silent() -> None:
        async with member_of(quick_bootstrap, group, ledger, "silent", name) as member:
            await drive([member], settled.is_set, "both share, and all is processed")
            ledger.vanished("silent")
            frozen.set()
            assert taken_over.wait(120)  # nothing runs on this loop meanwhile
            await drive([member], lambda: len(ledger.of("silent")) == 2, "it has a share again")
            await drive([member], over.is_set, "the other one has seen it")

    def in_thread() -> None:
        try:
            run(silent())
        except BaseException as failure:  # noqa: BLE001 - told to the test
            failures.append(failure)

    async def test() -> None:
        wanted = await create(quick_bootstrap, name, 4)
        await produce(quick_bootstrap, wanted, 5)
        thread = threading.Thread(target=in_thread)
        thread.start()
        try:
            async with member_of(quick_bootstrap, group, ledger, "awake", name) as awake:
                owned = lambda: (len(ledger.of("awake")), len(ledger.of("silent")))  # noqa: E731
                await drive([awake], lambda: owned() == (2, 2), "both share")
                done = dict.fromkeys(wanted, 5)
                # Also by the silent one: what it had fetched it would process when it wakes up.
                await drive([awake], lambda: ledger.committed == done, "all is processed")
                settled.set()
                await drive([awake], frozen.is_set, "the other one stands still")
                await drive([awake], lambda: owned() == (4, 0), "what was silent is taken over")
                taken_over.set()
                await drive([awake], lambda: owned() == (2, 2), "both share again")
                await produce(quick_bootstrap, wanted, 5)
                done = dict.fromkeys(wanted, 10)
                await drive([awake], lambda: ledger.committed == done, "what is new is, too")
        finally:
            for event in (settled, taken_over, over):
                event.set()
            thread.join(60)
        assert not thread.is_alive()
        assert failures == []
        assert ledger.has_read(wanted, 10)
        ledger.check()

    run(test())


async def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    """Read partition 0 up to the last stable offset."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", fetch_max_wait_ms=50
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    await consumer.start()
    await consumer.seek_to_beginning(partition)
    end = (await consumer.end_offsets([partition]))[partition]
    values: list[bytes] = []
    for _ in until_deadline("the end of the topic"):
        if await consumer.position(partition) >= end:
            break
        for records in (await consumer.getmany(timeout_ms=100)).values():
            values += [record.value for record in records]
    await consumer.stop()
    return values


def test_transactions_commit_abort_and_fence(quick_bootstrap: str, name: str) -> None:
    async def test() -> None:
        await create(quick_bootstrap, name)
        settings = {"bootstrap_servers": quick_bootstrap, "transactional_id": name}
        zombie = AIOKafkaProducer(**settings)
        await zombie.start()
        for text, commits in ((b"first", True), (b"second", False), (b"third", True)):
            await zombie.begin_transaction()
            for number in range(3):
                await zombie.send_and_wait(name, b"%s %d" % (text, number))
            if commits:
                await zombie.commit_transaction()
            else:
                await zombie.abort_transaction()
        expected = [b"%s %d" % (text, n) for text in (b"first", b"third") for n in range(3)]
        for _ in until_deadline("the last markers are written"):
            if await committed_values(quick_bootstrap, name) == expected:
                break
        await zombie.begin_transaction()
        await zombie.send_and_wait(name, b"of the zombie")
        async with AIOKafkaProducer(**settings) as heir:
            with pytest.raises(errors.ProducerFenced):
                await zombie.commit_transaction()
            async with heir.transaction():
                await heir.send_and_wait(name, b"of the heir")
        for _ in until_deadline("the last marker is written"):
            if await committed_values(quick_bootstrap, name) == [*expected, b"of the heir"]:
                break
        await zombie.stop()

    run(test())


def test_offsets_are_committed_with_their_transaction(quick_bootstrap: str, name: str) -> None:
    async def test() -> None:
        wanted = await create(quick_bootstrap, name)
        await produce(quick_bootstrap, wanted, 5)
        group, partition = f"group-of-{name}", TopicPartition(name, 0)
        async with AIOKafkaProducer(
            bootstrap_servers=quick_bootstrap, transactional_id=name
        ) as producer:
            for offset, commits in ((3, False), (4, True), (5, False)):
                await producer.begin_transaction()
                await producer.send_offsets_to_transaction({partition: offset}, group)
                if commits:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=quick_bootstrap, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([partition])
        for _ in until_deadline("the marker's offset counts"):
            if await consumer.committed(partition) == 4:
                break
        record = await consumer.getone()
        assert record.offset == 4
        await consumer.stop()

    run(test())

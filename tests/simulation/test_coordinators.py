"""Groups and transactions on a broker whose power fails at random moments.

Every seed is one history: a group commits rising offsets while somebody looks at them, and a
producer runs transactions over two partitions and the offsets of another group. With
log.flush.interval.messages=1 nobody is ever shown an offset that a crash takes back, and a
transaction is seen whole or not at all: all of those whose commit was acknowledged, none of those
whose abort was. `BARNABAS_CHAOS_SEEDS` asks for more histories than the suite runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.simulation.test_broker_crash import connect, serve

from barnabas.client.connection import Connection
from barnabas.log.flush import Flush
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.records.batch import read_batch, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, read_marker
from barnabas.simulation.world import World
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

SEEDS = int(os.environ.get("BARNABAS_CHAOS_SEEDS", "200")) // 5
GROUPS = 4
"""Seeds are run in a few tests, so that several workers share them."""

PATIENCE = 100
"""How often to look for the end of what a crash has interrupted."""

TOPIC = "t"
PLAIN_GROUP, TXN_GROUP, TXN_ID = "plain", "transactional", "transfers"
FLUSHED = {"log.flush.interval.messages": "1"}


class Refused(Exception):
    """The broker answered with an error."""


@dataclass
class Witness:
    """What clients were told."""

    committed_offset: int = 0
    seen_offset: int = 0
    transactions: dict[int, bool | None] = field(default_factory=dict)
    """By number: whether it was committed; None where nobody was told."""
    complaints: list[str] = field(default_factory=list)

    def offset_seen(self, offset: int, least: int) -> None:
        if offset < max(self.seen_offset, least):
            self.complaints.append(f"offset {offset} after {self.seen_offset}, promised {least}")
        self.seen_offset = max(self.seen_offset, offset)


async def ask(connection: Connection, request: Any, version: int) -> Any:
    """Send a request; an error anywhere in the answer is raised."""
    answer = await connection.send(request, version=version, timeout_ms=5000)
    for code in error_codes(answer):
        if code != ErrorCode.NONE:
            raise Refused(f"{type(request).__name__}: {ErrorCode.of(code).name}")
    return answer


def error_codes(message: Any) -> list[int]:
    """Return every error code anywhere in a message."""
    found: list[int] = []
    for each in message.FIELDS:
        value = getattr(message, each.name)
        if each.name.endswith("error_code"):
            found.append(value)
        elif each.struct is not None and value is not None:
            for part in value if each.is_array else [value]:
                found += error_codes(part)
    return found


async def persist(work: Callable[[Connection], Any], stop: asyncio.Event) -> None:
    """Do something over and over, with a new connection whenever it fails."""
    while not stop.is_set():
        connection = await connect("broker")
        try:
            while not stop.is_set():
                await work(connection)
        except BarnabasError:
            connection.close()
        except Refused:
            await asyncio.sleep(0.02)
    connection.close()


# a group without members commits, and somebody looks


async def commit_next(connection: Connection, witness: Witness) -> None:
    offset = witness.committed_offset + 1
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=PLAIN_GROUP,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[wanted])],
    )
    await ask(connection, request, 7)
    witness.committed_offset = offset


async def look(connection: Connection, witness: Witness) -> None:
    promised = witness.committed_offset
    witness.offset_seen(await fetch_offset(connection, PLAIN_GROUP), promised)


async def fetch_offset(connection: Connection, group: str) -> int:
    asked = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    request = OffsetFetchRequest(group_id=group, topics=[asked], require_stable=True)
    answer = await ask(connection, request, 7)
    return max(int(answer.topics[0].partitions[0].committed_offset), 0)


# transactions over two partitions and the offsets of a group


async def transact(connection: Connection, witness: Witness, world: World) -> None:
    """Take over the transactional id, and run transactions until one fails."""
    init = InitProducerIdRequest(transactional_id=TXN_ID, transaction_timeout_ms=60_000)
    granted = await ask(connection, init, 4)
    producer, sequence = (granted.producer_id, granted.producer_epoch), 0
    while True:
        number = len(witness.transactions) + 1
        commits = world.random.random() < 0.7
        witness.transactions[number] = None
        await run_transaction(connection, number, producer, sequence, commits)
        witness.transactions[number] = commits
        sequence += 1


async def run_transaction(
    connection: Connection, number: int, producer: tuple[int, int], sequence: int, commits: bool
) -> None:
    names: dict[str, Any] = {"producer_id": producer[0], "producer_epoch": producer[1]}
    topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 1])
    enlist = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN_ID,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic],
    )
    while True:
        try:
            await ask(connection, enlist, 3)
            break
        except Refused as refusal:
            if "CONCURRENT_TRANSACTIONS" not in str(refusal):
                raise
            await asyncio.sleep(0.01)  # the markers of the last one are being written
    add_offsets = AddOffsetsToTxnRequest(transactional_id=TXN_ID, group_id=TXN_GROUP, **names)
    await ask(connection, add_offsets, 3)
    for partition in (0, 1):
        batch = build_batch(
            [(1_700_000_000_000, None, b"%d" % number, ())],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=batch)
        produce = ProduceRequest(
            transactional_id=TXN_ID,
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        await ask(connection, produce, 9)
    wanted = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number)
    commit = TxnOffsetCommitRequest(
        transactional_id=TXN_ID,
        group_id=TXN_GROUP,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[wanted])],
        **names,
    )
    await ask(connection, commit, 3)
    end = EndTxnRequest(transactional_id=TXN_ID, committed=commits, **names)
    await ask(connection, end, 3)


async def committed_numbers(connection: Connection, partition: int) -> tuple[list[int], int, int]:
    """Read what is committed; return it, the last stable offset and the high watermark."""
    offset, numbers = 0, list[int]()
    ignored: set[int] = set()
    while True:
        result = await fetch(connection, partition, offset)
        if not result.records:
            return numbers, result.last_stable_offset, result.high_watermark
        aborted = sorted(
            (each.first_offset, each.producer_id) for each in result.aborted_transactions
        )
        data, position = bytes(result.records), 0
        for header in read_headers(data):
            while aborted and aborted[0][0] <= header.last_offset:
                ignored.add(aborted.pop(0)[1])
            records = list(read_batch(data, header, position))
            position += header.size
            offset = header.last_offset + 1
            if header.is_control:
                marker = read_marker(records[0])
                if marker is not None and marker.type is ControlType.ABORT:
                    ignored.discard(header.producer_id)
            elif header.producer_id not in ignored:
                numbers += [int(record.value or b"") for record in records]


async def fetch(connection: Connection, partition: int, offset: int) -> Any:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 22)
    request = FetchRequest(
        max_bytes=1 << 22,
        isolation_level=1,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    answer = await ask(connection, request, 11)
    return answer.responses[0].partitions[0]


async def judge(witness: Witness) -> None:
    """Hold what clients can read against what they were told."""
    both: list[tuple[list[int], int, int]] = []
    offset, trouble = 0, ""
    for _ in range(PATIENCE):
        # Whoever has the id next ends what was left open, and then all is stable.
        connection = await connect("broker")
        try:
            init = InitProducerIdRequest(transactional_id=TXN_ID, transaction_timeout_ms=60_000)
            await ask(connection, init, 4)
            both = [await committed_numbers(connection, partition) for partition in (0, 1)]
            offset = await fetch_offset(connection, TXN_GROUP)
            await look(connection, witness)
            if all(stable == end for _, stable, end in both):
                break
            trouble = f"last stable offsets and ends are {[each[1:] for each in both]}"
        except (Refused, BarnabasError) as failure:
            trouble = str(failure)
        finally:
            connection.close()
        await asyncio.sleep(0.05)
    else:
        witness.complaints.append(trouble)
        return
    (first, _, _), (second, _, _) = both
    if first != second:
        witness.complaints.append(f"partition 0 has {first}, partition 1 {second}")
    expected = {number for number, told in witness.transactions.items() if told}
    forbidden = {number for number, told in witness.transactions.items() if told is False}
    witness.complaints += [f"{number} is not there" for number in sorted(expected - set(first))]
    witness.complaints += [f"{number} is there" for number in sorted(forbidden & set(first))]
    if first != sorted(set(first)):
        witness.complaints.append(f"{first} is not in order")
    if offset != max(first, default=0):
        witness.complaints.append(f"the group's offset is {offset} after {first}")
    for number, told in witness.transactions.items():
        if told is None:  # what nobody was told is decided by now, once and for all
            witness.transactions[number] = number in first


def run_history(seed: int, options: dict[str, str], crashes: int = 2) -> Witness:
    """Live through one history."""
    witness = Witness()

    async def scenario(world: World) -> None:
        connection = await connect("broker")
        create = CreateTopicsRequest(
            topics=[CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)]
        )
        await ask(connection, create, 7)
        for key_type, key in enumerate((PLAIN_GROUP, TXN_ID)):
            await ask(connection, FindCoordinatorRequest(key=key, key_type=key_type), 3)
        connection.close()
        for _ in range(crashes):
            stop = asyncio.Event()
            works = (
                lambda each: commit_next(each, witness),
                lambda each: look(each, witness),
                lambda each: transact(each, witness, world),
            )
            actors = [asyncio.ensure_future(persist(work, stop)) for work in works]
            await asyncio.sleep(world.random.uniform(0.05, 0.5))
            world.crash("broker")
            stop.set()
            world.restart("broker")
            await asyncio.gather(*actors)
            await judge(witness)

    few = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with World(seed) as world:
        world.start("broker", lambda host: serve(host, **few, **options))
        world.run(scenario(world), until=300)
    return witness


@pytest.mark.parametrize("group", range(GROUPS))
def test_offsets_never_go_back_and_transactions_are_whole(group: int) -> None:
    committed = ended = 0
    for seed in range(group, SEEDS, GROUPS):
        witness = run_history(seed, FLUSHED)
        assert witness.complaints == [], f"seed {seed}"
        committed += witness.committed_offset
        ended += len(witness.transactions)
    assert committed > 0
    assert ended > 0


def test_the_check_notices_when_the_flush_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same histories break promises if flushing does nothing, so the test above can fail."""

    def pretend(flush: Flush) -> None:
        flush.done = True

    monkeypatch.setattr(Flush, "run", pretend)
    assert any(run_history(seed, FLUSHED).complaints for seed in range(5))

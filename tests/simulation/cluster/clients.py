"""Clients of a simulated cluster, which remember exactly what they were promised.

They run on the driver's host: an idempotent producer (the real one), a reader that never trusts
what it has read before, a group that commits rising offsets, a producer of transactions that span
two partitions and the offsets of another group, and one that asks brokers which may lead no longer.
Each goes on until it is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tests.simulation.cluster.answers import OFFSETS, error_codes
from tests.simulation.cluster.brokers import PORT, Brokers
from tests.simulation.cluster.witness import BOUND_S, Witness

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ANY, ClusterClient, Destination
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.metadata.partition_for import partition_for
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.producer.core import ProducerCore
from barnabas.records.batch import read_batch, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, read_marker
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

RECORDS, TRANSFERS = "records", "transfers"
PLAIN_GROUP, TXN_GROUP, TXN_ID = "plain", "transactional", "copier"
GROUP, TRANSACTION = 0, 1
TIMEOUT_MS = 1500


class Refused(Exception):
    """A broker answered with an error."""

    def __init__(self, request: Any, code: int) -> None:
        self.code = ErrorCode.of(code)
        super().__init__(f"{type(request).__name__}: {self.code.name}")


class Client:
    """Requests to whoever should get them, one attempt each."""

    def __init__(self, brokers: Brokers, name: str) -> None:
        self.brokers = brokers
        self.witness: Witness = brokers.witness
        self.random = Random(f"{brokers.world.seed}/{name}")
        self.cluster_client = cluster_client(brokers, name, self.random)

    async def ask(self, request: Any, to: Destination, version: int) -> Any:
        """Send a request; an error anywhere in the answer is raised."""
        try:
            connection = await self.cluster_client.connection(to)
            answer = await connection.send(request, version=version, timeout_ms=TIMEOUT_MS)
        except BarnabasError:
            await self._look_again(to)
            raise
        for code in error_codes(answer):
            if code != ErrorCode.NONE:
                await self._look_again(to)
                raise Refused(request, code)
        return answer

    async def _look_again(self, to: Destination) -> None:
        if isinstance(to, TopicPartition):
            await self.cluster_client.refresh([to.topic])

    async def coordinator(self, key: str, key_type: int) -> int:
        """Find a coordinator."""
        found = await self.ask(FindCoordinatorRequest(key=key, key_type=key_type), ANY, 3)
        return int(found.node_id)

    async def persist(self, work: Callable[[], Awaitable[object]], stop: asyncio.Event) -> None:
        """Do something over and over, whatever comes of it."""
        while not stop.is_set():
            try:
                await work()
                await asyncio.sleep(self.random.uniform(0, 0.1))
            except (BarnabasError, Refused):
                await asyncio.sleep(self.random.uniform(0.05, 0.3))
        await self.cluster_client.close()


def cluster_client(brokers: Brokers, name: str, random: Random) -> ClusterClient:
    return ClusterClient(
        [Address(brokers.name(number), PORT) for number in brokers.numbers],
        client_id=name,
        request_timeout_ms=TIMEOUT_MS,
        connect_timeout_ms=500,
        random=random,
    )


class Writer:
    """An idempotent producer with acks=all: what it was promised is noted when it hears it."""

    def __init__(self, brokers: Brokers, partitions: int) -> None:
        self._brokers = brokers
        self._partitions = partitions
        self._random = Random(f"{brokers.world.seed}/writer")
        self.sent = 0
        options = parse_client_options(
            ProducerOptions,
            {
                "batch_size": self._random.choice([100, 300, 1000]),
                "linger_ms": self._random.choice([0, 5]),
                "request_timeout_ms": TIMEOUT_MS,
                "delivery_timeout_ms": 60_000,
                "max_in_flight_requests_per_connection": self._random.choice([1, 5]),
            },
        )
        self._core = ProducerCore(
            options,
            post=asyncio.get_running_loop().call_soon,
            wait=_unexpected,
            cluster_client=cluster_client(brokers, "writer", self._random),
            random=self._random,
            clock=brokers.world.now_ms,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Write numbers to all partitions until it is told to stop and all is safe."""
        core, witness = self._core, self._brokers.witness
        await core.start(60_000)
        await core.topics.know(RECORDS, 60_000)
        under_way: list[tuple[TopicPartition, bytes, Any]] = []
        while not stop.is_set():
            for _ in range(self._random.randint(1, 4)):
                self.sent += 1
                key = TopicPartition(RECORDS, self._random.randrange(self._partitions))
                value = b"%d" % self.sent
                future = core.accumulator.append(RECORDS, value, partition=key.partition)
                under_way.append((key, value, future))
            await asyncio.sleep(self._random.uniform(0.01, 0.15))
            under_way = [each for each in under_way if not self._settled(*each)]
        await core.flush()
        left = [each for each in under_way if not self._settled(*each)]
        if left:
            witness.complain(f"{len(left)} records have no outcome")
        await core.close(5000)

    def _settled(self, key: TopicPartition, value: bytes, future: Any) -> bool:
        if not future.is_done:
            return False
        if future.succeeded() and future.value.offset >= 0:
            self._brokers.witness.promised(key, future.value.offset, value)
        return True


def _unexpected(*arguments: object) -> None:
    raise AssertionError(arguments)


class Reader(Client):
    """Reads every partition of a topic, at times from the beginning again."""

    def __init__(self, brokers: Brokers, partitions: int) -> None:
        super().__init__(brokers, "reader")
        self._positions = dict.fromkeys(range(partitions), 0)

    async def step(self) -> None:
        """Read on in one partition, and ask where it ends."""
        number = self.random.choice(list(self._positions))
        key = TopicPartition(RECORDS, number)
        if self.random.random() < 0.1:
            self._positions[number] = 0
        if self.cluster_client.cluster.partition(key) is None:
            await self.cluster_client.refresh([RECORDS])
        epoch = self.cluster_client.cluster.leader_epoch(key)
        found, _, end = await self.read(key, self._positions[number], epoch)
        for offset, value in found.items():
            self.witness.read(key, offset, value)
        self._positions[number] = end
        wanted = ListOffsetsPartition(
            partition_index=number, timestamp=-1, current_leader_epoch=epoch
        )
        answer = await self.ask(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=RECORDS, partitions=[wanted])]
            ),
            key,
            6,
        )
        told = answer.topics[0].partitions[0]
        self.witness.latest(key, told.leader_epoch, told.offset)

    async def read(
        self, key: TopicPartition, offset: int, epoch: int = -1
    ) -> tuple[dict[int, bytes], int, int]:
        """Read once; return records by offset, the high watermark, and where to go on."""
        data = await fetch(self, key, offset, epoch, isolation=0)
        found: dict[int, bytes] = {}
        records, position = bytes(data.records or b""), 0
        for header in read_headers(records):
            if not header.is_control:
                for record in read_batch(records, header, position):
                    found[record.offset] = bytes(record.value or b"")
            position += header.size
            offset = header.last_offset + 1
        return found, data.high_watermark, offset


async def fetch(
    client: Client,
    key: TopicPartition,
    offset: int,
    epoch: int,
    isolation: int,
    to: int | None = None,
) -> Any:
    wanted = FetchPartition(
        partition=key.partition,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        partition_max_bytes=1 << 20,
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic=key.topic, partitions=[wanted])],
    )
    answer = await client.ask(request, key if to is None else to, 11)
    return answer.responses[0].partitions[0]


class Committer(Client):
    """Commits rising offsets for a group without members, and looks at them.

    One that is `informed` knows at any time who coordinates: one that was deposed hears nothing of
    it, and so has offsets to tell that are old.
    """

    def __init__(
        self, brokers: Brokers, name: str = "committer", *, informed: bool = False
    ) -> None:
        super().__init__(brokers, name)
        self._informed = informed
        self._next = 0
        self._late: set[int] = set()

    async def step(self) -> None:
        """Commit the next offset, and look what the coordinator says it is."""
        state = self.brokers.state(OFFSETS) if self._informed else None
        if state is not None and state.leader >= 0:
            to = state.leader
        else:
            to = await self.coordinator(PLAIN_GROUP, GROUP)
        if self.random.random() < 0.5:
            self._next += 1
            wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=self._next)
            request = OffsetCommitRequest(
                group_id=PLAIN_GROUP,
                topics=[OffsetCommitRequestTopic(name=RECORDS, partitions=[wanted])],
            )
            self._late.add(self._next)
            await self.ask(request, to, 7)
            self._late.discard(self._next)
            self.witness.committed(PLAIN_GROUP, self._next, self.brokers.world.loop.time())
        else:
            await self.look(PLAIN_GROUP, to)

    async def look(self, group: str, to: int) -> int | None:
        """Return the committed offset, if who tells it was the coordinator all the while.

        A broker that was deposed and does not know it yet tells what was true before; but not if
        it lost its session, and the bound after that is over.
        """
        key = TopicPartition("__consumer_offsets", partition_for(group, 1))
        before = self.brokers.state(key)
        topic = RECORDS if group == PLAIN_GROUP else TRANSFERS
        least = self.witness.committed_least(group)
        if self.brokers.lost_session(to, BOUND_S):
            least_ever = self.witness.committed_before(
                group, self.brokers.world.loop.time() - BOUND_S
            )
        else:
            least_ever = 0
        asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=group, topics=[asked], require_stable=True)
        answer = await self.ask(request, to, 7)
        after = self.brokers.state(key)
        offset = max(int(answer.topics[0].partitions[0].committed_offset), 0)
        late = self._late if group == PLAIN_GROUP else set[int]()
        self.witness.tells_committed(to, group, offset, least_ever, late)
        if before is None or after is None or before.leader_epoch != after.leader_epoch:
            return None
        if before.leader != to:
            return None
        self.witness.shows_committed(group, offset, least, late)
        return offset


class Straggler(Committer):
    """Asks one broker, whether it leads and coordinates or not, as clients with old metadata do."""

    def __init__(self, brokers: Brokers, to: int, committer: Committer, partitions: int) -> None:
        super().__init__(brokers, f"straggler-{to}")
        self._to = to
        self._late = committer._late
        self._partitions = partitions

    async def step(self) -> None:
        """Ask something; the witness sees what is answered."""
        key = TopicPartition(RECORDS, self.random.randrange(self._partitions))
        ask = self.random.choice([self._read, self._find_end, self._find_offset])
        try:
            await ask(key)
        except Refused:
            return  # as it mostly should be

    async def _read(self, key: TopicPartition) -> None:
        await fetch(self, key, self.random.randrange(200), -1, isolation=0, to=self._to)

    async def _find_end(self, key: TopicPartition) -> None:
        wanted = ListOffsetsPartition(partition_index=key.partition, timestamp=-1)
        topics = [ListOffsetsTopic(name=key.topic, partitions=[wanted])]
        await self.ask(ListOffsetsRequest(replica_id=-1, topics=topics), self._to, 6)

    async def _find_offset(self, _: TopicPartition) -> None:
        await self.look(PLAIN_GROUP, self._to)


class Copier(Client):
    """Runs transactions over two partitions and the offset of a group."""

    def __init__(self, brokers: Brokers) -> None:
        super().__init__(brokers, "copier")
        self.outcomes: dict[int, bool | None] = {}
        """By number: whether it was committed; None where nobody was told."""

    async def step(self) -> None:
        """Take over the transactional id, and run transactions until one fails."""
        self._to = await self.coordinator(TXN_ID, TRANSACTION)
        granted = await self.take_over()
        producer = (granted.producer_id, granted.producer_epoch)
        for sequence in range(self.random.randint(1, 6)):
            number = len(self.outcomes) + 1
            commits = self.random.random() < 0.7
            self.outcomes[number] = None
            await self._transact(number, producer, sequence, commits)
            self.outcomes[number] = commits
            await asyncio.sleep(self.random.uniform(0, 0.1))

    async def take_over(self) -> Any:
        self._to = await self.coordinator(TXN_ID, TRANSACTION)
        init = InitProducerIdRequest(transactional_id=TXN_ID, transaction_timeout_ms=60_000)
        return await self._unless_busy(init, self._to, 4)

    async def _unless_busy(self, request: Any, to: Destination, version: int) -> Any:
        for _ in range(30):
            try:
                return await self.ask(request, to, version)
            except Refused as refusal:
                if refusal.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise
                await asyncio.sleep(0.05)  # the markers of the last one are being written
        return await self.ask(request, to, version)

    async def _transact(
        self, number: int, producer: tuple[int, int], sequence: int, commits: bool
    ) -> None:
        names: dict[str, Any] = {"producer_id": producer[0], "producer_epoch": producer[1]}
        enlist = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN_ID,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TRANSFERS, partitions=[0, 1])],
        )
        await self._unless_busy(enlist, self._to, 3)
        add_offsets = AddOffsetsToTxnRequest(transactional_id=TXN_ID, group_id=TXN_GROUP, **names)
        await self.ask(add_offsets, self._to, 3)
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
                timeout_ms=TIMEOUT_MS,
                topic_data=[TopicProduceData(name=TRANSFERS, partition_data=[data])],
            )
            await self.ask(produce, TopicPartition(TRANSFERS, partition), 9)
        wanted = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        commit = TxnOffsetCommitRequest(
            transactional_id=TXN_ID,
            group_id=TXN_GROUP,
            topics=[TxnOffsetCommitRequestTopic(name=TRANSFERS, partitions=[wanted])],
            **names,
        )
        await self.ask(commit, await self.coordinator(TXN_GROUP, GROUP), 3)
        end = EndTxnRequest(transactional_id=TXN_ID, committed=commits, **names)
        await self.ask(end, self._to, 3)

    async def committed_numbers(self, partition: int) -> tuple[list[int], bool]:
        """Read what is committed in a partition; also tell whether all transactions have ended."""
        key = TopicPartition(TRANSFERS, partition)
        offset, numbers = 0, list[int]()
        ignored: set[int] = set()
        while True:
            result = await fetch(self, key, offset, -1, isolation=1)
            if not result.records:
                return numbers, result.last_stable_offset == result.high_watermark
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

    async def settle(self, looker: Committer) -> tuple[list[int], list[int], int] | None:
        """End what was left open; return what both partitions and the group show then."""
        await self.take_over()
        first, first_ended = await self.committed_numbers(0)
        second, second_ended = await self.committed_numbers(1)
        offset = await looker.look(TXN_GROUP, await self.coordinator(TXN_GROUP, GROUP))
        if not first_ended or not second_ended or offset is None:
            return None
        return first, second, offset

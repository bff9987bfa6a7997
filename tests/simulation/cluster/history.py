"""One history of a cluster under one seed: brokers, clients, faults, and the judgement.

    history = run_history(7)              # the same events whenever seed 7 is run
    assert history.complaints == []

The seed decides how many brokers there are, what their disks are trusted with, what the clients do
and what goes wrong. In the end all is mended, the cluster must come to rest with every replica in
sync, and everything that anybody was promised or shown must be there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from tests.simulation.cluster.brokers import Brokers, content
from tests.simulation.cluster.clients import (
    GROUP,
    PLAIN_GROUP,
    RECORDS,
    TRANSACTION,
    TRANSFERS,
    TXN_ID,
    Client,
    Committer,
    Copier,
    Reader,
    Refused,
    Straggler,
    Writer,
)
from tests.simulation.cluster.faults import Faults, Kind
from tests.simulation.cluster.witness import Witness

from barnabas.client.cluster_client import CONTROLLER
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import read_batch, read_headers
from barnabas.simulation.world import World
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

PARTITIONS = 2
Range = tuple[float, float]
NEAR, FAR = (0.1, 2.0), (1.0, 40.0)
"""How many milliseconds a message takes."""

REST_S = 60
"""How long a mended cluster may take until every replica is in sync."""


@dataclass
class History:
    """What came of a seed."""

    kind: Kind
    complaints: list[str]
    acknowledged: int
    transactions: int
    epochs: int
    controllers: int
    superseded: int
    refusals: int
    offsets_shown: int
    away_acknowledged: int
    seconds: float
    digest: str


def run_history(
    seed: int,
    kind: Kind | None = None,
    latency_ms: Range | None = None,
    *,
    secured: bool = False,
) -> History:
    """Live through one history; what is not given is drawn from the seed."""
    latency_ms = latency_ms or Random(f"{seed}/latency").choice([NEAR, NEAR, FAR])
    with World(seed, latency_ms=latency_ms) as world:
        kind = kind or list(Kind)[seed % len(Kind)]
        count = world.random.choice([3, 3, 4, 5])
        witness = Witness()
        flushes = {"log.flush.interval.messages": "1"} if kind is Kind.FLUSHED else {}
        brokers = Brokers(world, count, witness, secured, **flushes)
        scenario = _Scenario(brokers, kind, world.random.randint(2, 6))
        world.run(scenario.run(), until=600)
        return History(
            kind,
            witness.complaints,
            sum(map(len, witness.acknowledged.values())),
            len(scenario.copier.outcomes),
            witness.epochs,
            witness.controllers,
            witness.superseded,
            witness.refusals,
            witness.offsets_shown,
            witness.away_acknowledged,
            world.loop.time(),
            world.trace.digest(),
        )


class _Scenario:
    def __init__(self, brokers: Brokers, kind: Kind, deeds: int) -> None:
        self.brokers = brokers
        self.witness = brokers.witness
        self.copier = Copier(brokers)
        self._faults = Faults(brokers, kind)
        self._deeds = deeds
        self._reader = Reader(brokers, PARTITIONS)
        self._committer = Committer(brokers, informed=kind is Kind.SEVERED)

    async def run(self) -> None:
        brokers = self.brokers
        brokers.start()
        await self._found()
        stop = asyncio.Event()
        writer = Writer(brokers, PARTITIONS)
        stragglers = [
            Straggler(brokers, number, self._committer, PARTITIONS) for number in brokers.numbers
        ]
        clients = [
            asyncio.ensure_future(work)
            for work in (
                writer.run(stop),
                self._reader.persist(self._reader.step, stop),
                self._committer.persist(self._committer.step, stop),
                self.copier.persist(self.copier.step, stop),
                *(each.persist(each.step, stop) for each in stragglers),
            )
        ]
        await self._faults.run(self._deeds)
        brokers.world.trace.note("mended")
        rests = await self._rest()
        stop.set()
        await asyncio.gather(*clients)
        if not rests or not await self._rest():
            self.witness.complain(f"the cluster does not come to rest: {brokers.trouble()}")
            return
        await self._judge_transactions()
        await self._until_level()
        for key in brokers.assignments():
            self._judge_replicas(key)

    async def _found(self) -> None:
        """Make the topics, before anything goes wrong."""
        client = Client(self.brokers, "founder")
        topics = [
            CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=3)
            for name in (RECORDS, TRANSFERS)
        ]
        await self._rest()
        await client.cluster_client.refresh()
        await client.ask(CreateTopicsRequest(topics=topics, timeout_ms=5000), CONTROLLER, 5)
        for key, key_type in ((PLAIN_GROUP, GROUP), (TXN_ID, TRANSACTION)):
            await client.coordinator(key, key_type)
        await self._rest()
        await client.cluster_client.close()

    async def _rest(self) -> bool:
        return await self.brokers.come_to_rest(REST_S)

    async def _judge_transactions(self) -> None:
        copier, looker, trouble = Copier(self.brokers), Committer(self.brokers), ""
        for _ in range(100):
            try:
                settled = await copier.settle(looker)
                if settled is not None:
                    break
                trouble = "some are open"
            except (BarnabasError, Refused) as failure:
                trouble = str(failure)
            await asyncio.sleep(0.1)
        else:
            self.witness.complain(f"the transactions do not end: {trouble}")
            return
        first, second, offset = settled
        complain = self.witness.complain
        if first != second:
            complain(f"partition 0 has {first}, partition 1 {second}")
        if first != sorted(set(first)):
            complain(f"{first} is not in order, or not once each")
        for number, told in self.copier.outcomes.items():
            if told is not None and told != (number in first):
                complain(f"transaction {number} was {'committed' if told else 'aborted'}: {first}")
        if offset != max(first, default=0):
            complain(f"the offset in transactions is {offset} after {first}")
        await copier.cluster_client.close()
        await looker.cluster_client.close()

    async def _until_level(self) -> None:
        """Wait until followers have all, and know how far readers may see."""
        for key in self.brokers.assignments():
            for _ in range(200):
                logs = [partition.log for _, partition in self.brokers.replicas(key)]
                if len({(log.log_end_offset, log.high_watermark) for log in logs}) == 1:
                    break
                await asyncio.sleep(0.05)
            else:
                told = [(log.log_end_offset, log.high_watermark) for log in logs]
                self.witness.complain(f"{key}: ends and watermarks are {told}")

    def _judge_replicas(self, key: TopicPartition) -> None:
        (leader, led), *others = self.brokers.replicas(key)
        truth = content(led.log)
        for number, partition in others:
            if partition.log.log_start_offset != led.log.log_start_offset:
                continue  # retention may cut one of them first; none is on in a history
            if content(partition.log) != truth:
                self.witness.complain(f"{key} differs on brokers {leader} and {number}")
        found, position = dict[int, bytes](), 0
        for header in read_headers(truth):
            if not header.is_control:
                for record in read_batch(truth, header, position):
                    found[record.offset] = bytes(record.value or b"")
            position += header.size
        if key.topic in (RECORDS, TRANSFERS):
            self.witness.judge(key, found, led.log.log_end_offset)
        if key.topic == RECORDS:
            written = [int(value) for _, value in sorted(found.items())]
            if any(one >= other for one, other in pairwise(written)):
                self.witness.complain(f"{key} is out of order, or has a record twice")

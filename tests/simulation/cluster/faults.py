"""What goes wrong in a simulated cluster, and what its administrators do meanwhile.

Each deed begins something and mends it after a while. In a history of the kind `REPLICATED` one
broker at a time loses its power, and with it whatever was not flushed, and the next deed waits
until all replicas are in sync again: there nothing but replication keeps the records. In the other
kinds anything happens at any time, two things at once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum

from tests.simulation.cluster.brokers import SESSION_MS, Brokers
from tests.simulation.cluster.clients import RECORDS, TRANSFERS, Client, Refused

from barnabas.client.cluster_client import CONTROLLER
from barnabas.model.errors import BarnabasError
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import COORDINATION
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

SESSION_S = SESSION_MS / 1000
ACKNOWLEDGED_WITHIN_S = 3
"""Within which time something is acknowledged in every partition, if nothing hinders."""


class Kind(Enum):
    """What the brokers' disks are trusted with."""

    FLUSHED = "every record is flushed before it counts; power fails anywhere"
    WRITTEN = "processes are killed; what was written stays"
    REPLICATED = "power fails on one broker at a time; only the other replicas keep its records"
    SEVERED = "one broker at a time is cut off, one way or both, until its session has ended"
    UNCOORDINATED = "nothing fails but the coordination service, which is away for all"


class Faults:
    """Disturbs a cluster until it has had enough."""

    def __init__(self, brokers: Brokers, kind: Kind) -> None:
        self._brokers = brokers
        self._world = brokers.world
        self._kind = kind
        self._random = brokers.world.random
        self._admin = Client(brokers, "admin")
        self._busy: set[int] = set()
        """Brokers that something is being done to."""
        self._topics = 0

    async def run(self, deeds: int) -> None:
        """Do this many deeds, and leave everything mended."""
        if self._kind is Kind.REPLICATED:
            for _ in range(deeds):
                await self._deed([self._lose_power, self._lose_power, self._stop])
                await self._brokers.come_to_rest(math.inf)
        elif self._kind is Kind.SEVERED:
            for _ in range(deeds):
                await self._deed([self._cut_off_tree, self._mute, self._deafen, self._pause])
                await self._brokers.come_to_rest(math.inf)
        elif self._kind is Kind.UNCOORDINATED:
            for _ in range(deeds):
                await self._brokers.come_to_rest(math.inf)
                # All must hear of the service again; and a producer needs it once, to begin.
                await asyncio.sleep(self._random.uniform(0.5, 1) * SESSION_S)
                await self._brokers.witness.first_acknowledged.wait()
                await self._lose_quorum_alone()
        else:
            first = deeds // 2
            await asyncio.gather(self._some(first), self._some(deeds - first))
        await self._admin.cluster_client.close()

    async def _some(self, deeds: int) -> None:
        kinds = [
            *(self._end,) * 4,
            *(self._pause,) * 3,
            *(self._cut,) * 3,
            *(self._cut_off_tree,) * 2,
            self._isolate,
            *(self._mute,) * 2,
            *(self._deafen,) * 2,
            self._lose_quorum,
            self._reset,
            self._expire,
            self._stop,
            *(self._administer,) * 3,
        ]
        for _ in range(deeds):
            await self._deed(kinds)

    async def _deed(self, kinds: Sequence[Callable[[int], Awaitable[None]]]) -> None:
        await asyncio.sleep(self._random.uniform(0.05, 1.0))
        free = [n for n in self._brokers.numbers if n not in self._busy]
        number, deed = self._random.choice(free), self._random.choice(kinds)
        self._busy.add(number)
        try:
            await deed(number)
        finally:
            self._busy.discard(number)

    def _while(self) -> float:
        """Draw how long something lasts: often too short for a session to end, often not."""
        if self._kind is Kind.SEVERED:
            return self._random.uniform(1.5, 4) * SESSION_S
        return self._random.choice([0.1, 0.5, 1, 2]) * self._random.uniform(0.5, 1.5) * SESSION_S

    # -- deeds --------------------------------------------------------------------------------

    async def _end(self, number: int) -> None:
        how = "kill" if self._kind is Kind.WRITTEN else self._random.choice(["crash", "silent"])
        self._brokers.end(number, how)
        await asyncio.sleep(self._random.choice([0.0, self._while()]))
        self._brokers.restart(number)

    async def _lose_power(self, number: int) -> None:
        self._brokers.end(number, self._random.choice(["crash", "silent"]))
        await asyncio.sleep(self._random.choice([0.0, 0.0, self._while()]))
        self._brokers.restart(number)

    async def _pause(self, number: int) -> None:
        name = self._brokers.name(number)
        self._world.pause(name)
        await asyncio.sleep(self._while())
        self._world.resume(name)

    async def _cut(self, number: int) -> None:
        other = self._random.choice([n for n in self._brokers.numbers if n != number])
        peer = self._random.choice([self._brokers.name(other), DRIVER])
        ends = [self._brokers.name(number), peer]
        self._random.shuffle(ends)
        self._world.network.cut(*ends, both=self._random.random() < 0.5)
        await asyncio.sleep(self._while())
        self._world.network.heal(*ends)

    async def _cut_off_tree(self, number: int) -> None:
        """Cut a broker off the coordination service: for the cluster it is dead, and leads on."""
        name = self._brokers.name(number)
        self._world.network.cut(name, COORDINATION, both=self._random.random() < 0.7)
        await asyncio.sleep(self._while())
        self._world.network.heal(name, COORDINATION)

    async def _isolate(self, number: int) -> None:
        name = self._brokers.name(number)
        others = [other for other in self._world.network.hosts if other != name]
        for other in others:
            self._world.network.cut(name, other)
        await asyncio.sleep(self._while())
        for other in others:
            self._world.network.heal(name, other)

    async def _mute(self, number: int) -> None:
        """Let nothing that a broker sends reach anybody but clients, which know nothing of it."""
        name = self._brokers.name(number)
        for other in self._others(name):
            self._world.network.cut(name, other, both=False)
        await asyncio.sleep(self._while())
        for other in self._others(name):
            self._world.network.heal(name, other)

    async def _deafen(self, number: int) -> None:
        """Let a broker hear nobody but clients."""
        name = self._brokers.name(number)
        for other in self._others(name):
            self._world.network.cut(other, name, both=False)
        await asyncio.sleep(self._while())
        for other in self._others(name):
            self._world.network.heal(name, other)

    def _others(self, name: str) -> list[str]:
        return [other for other in self._world.network.hosts if other not in (name, DRIVER)]

    async def _lose_quorum(self, _: int) -> None:
        """Take the coordination service away from all; it ends no session meanwhile."""
        store, network = self._world.coordination_store, self._world.network
        if store.is_away:
            return  # by the other one who does deeds
        store.go_away()
        network.set_down(COORDINATION, True)
        await asyncio.sleep(self._while())
        network.set_down(COORDINATION, False)
        store.come_back()

    async def _lose_quorum_alone(self) -> None:
        """Take the service away, and see that nobody notices but by the way."""
        witness, loop = self._brokers.witness, self._world.loop
        away = asyncio.ensure_future(self._lose_quorum(0))
        told_s = loop.time()
        told = {key: len(found) for key, found in witness.acknowledged.items()}
        while not away.done():
            await asyncio.sleep(0.05)
            for number, broker in self._brokers.running.items():
                if broker.silence.is_silent:
                    witness.complain(f"{number} falls silent although nobody can be elected")
            now = {key: len(found) for key, found in witness.acknowledged.items()}
            if now.keys() and all(now[key] > told.get(key, 0) for key in now):
                witness.away_acknowledged += sum(now.values()) - sum(told.values())
                told_s, told = loop.time(), now
            elif loop.time() - told_s > ACKNOWLEDGED_WITHIN_S:
                witness.complain("nothing is acknowledged while the service is away")
                told_s = loop.time()
        await away

    async def _reset(self, number: int) -> None:
        for other in (DRIVER, *map(self._brokers.name, self._brokers.numbers)):
            self._world.network.reset(self._brokers.name(number), other)

    async def _expire(self, number: int) -> None:
        self._brokers.expire(number)

    async def _stop(self, number: int) -> None:
        """Shut a broker down in order, as far as it gets in time."""
        self._brokers.ask_to_stop(number)
        await asyncio.sleep(self._random.uniform(0.3, 3))
        self._brokers.end(number, "kill")
        await asyncio.sleep(self._random.uniform(0, 1))
        self._brokers.restart(number)

    # -- administration -----------------------------------------------------------------------

    async def _administer(self, _: int) -> None:
        deed = self._random.choice(
            [
                self._create,
                self._delete,
                self._reassign,
                self._move_aside,
                self._cancel,
                self._elect,
            ]
        )
        try:
            await deed()
        except (BarnabasError, Refused) as refusal:
            self._world.trace.note("refused:", refusal)

    async def _create(self) -> None:
        self._topics += 1
        topic = CreatableTopic(
            name=f"side-{self._topics % 3}", num_partitions=2, replication_factor=3
        )
        await self._admin.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), CONTROLLER, 5)

    async def _delete(self) -> None:
        name = f"side-{self._random.randrange(3)}"
        await self._admin.ask(
            DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), CONTROLLER, 4
        )

    async def _reassign(self) -> None:
        await self._move(self._random.choice([RECORDS, TRANSFERS]))

    async def _move_aside(self) -> None:
        """Move what may be deleted meanwhile."""
        await self._move(f"side-{self._random.randrange(3)}")

    async def _move(self, name: str) -> None:
        replicas = self._random.sample(self._brokers.numbers, 3)
        await self._ask_to_move(name, self._random.randrange(2), replicas)

    async def _cancel(self) -> None:
        """Call back a move, if one is under way."""
        name = self._random.choice([RECORDS, TRANSFERS, "side-0", "side-1", "side-2"])
        await self._ask_to_move(name, self._random.randrange(2), None)

    async def _ask_to_move(self, name: str, number: int, replicas: list[int] | None) -> None:
        wanted = ReassignablePartition(partition_index=number, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=[wanted])]
        )
        await self._admin.ask(request, CONTROLLER, 0)

    async def _elect(self) -> None:
        topics = [TopicPartitions(topic=name, partitions=[0, 1]) for name in (RECORDS, TRANSFERS)]
        request = ElectLeadersRequest(topic_partitions=topics, timeout_ms=1000)
        await self._admin.ask(request, CONTROLLER, 1)

"""Leaders: how partitions get their first one, the next one, and none.

Every new leadership is written to the tree before anybody is told, under the version that was last
seen. Where somebody else wrote meanwhile, the node is read again and the election held anew.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from barnabas.controller import nodes
from barnabas.controller.election import (
    Elected,
    Election,
    elect_any,
    elect_in_sync,
    elect_proven,
)
from barnabas.controller.guarded_tree import Change, GuardedTree
from barnabas.controller.knowledge import Knowledge
from barnabas.controller.leadership import Leadership
from barnabas.controller.outbox import Outbox
from barnabas.controller.phases import PartitionPhase
from barnabas.coordination.contract import BadVersion, Create, NodeExists, NoNode, Set
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.controller")

ATTEMPTS = 5
"""How often an election is held anew because the node changed under it."""


class Partitions:
    """The leaderships of one controller's term."""

    def __init__(
        self,
        knowledge: Knowledge,
        tree: GuardedTree,
        outbox: Outbox,
        epoch: int,
        allows_unclean: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._knowledge = knowledge
        self._tree = tree
        self._outbox = outbox
        self._epoch = epoch
        self._allows_unclean = allows_unclean
        self._written: dict[TopicPartition, int] = {}
        """With which change of the tree each leadership was written, as it was when it was read."""

    async def load(self, keys: Iterable[TopicPartition]) -> None:
        """Read the leaderships of partitions, and put each where it is in its life."""
        knowledge = self._knowledge
        for key in keys:
            leadership = await self._read(key)
            if leadership is None:
                knowledge.set_phase(key, PartitionPhase.NEW)
                continue
            knowledge.leaderships[key] = leadership
            online = knowledge.serves(leadership.leader, key)
            knowledge.set_phase(key, PartitionPhase.ONLINE if online else PartitionPhase.OFFLINE)

    async def account_for_lives(self) -> None:
        """Take out of sync who is gone, or has begun a new life, since nobody was in office.

        A registration that is younger than what a partition's node says was not known to whoever
        wrote that.
        """
        knowledge = self._knowledge
        by_newcomers: dict[frozenset[int], list[TopicPartition]] = {}
        for key, written in self._written.items():
            held = knowledge.leaderships.get(key)
            if held is None or key.topic in knowledge.deleting:
                continue
            newcomers = frozenset(
                broker
                for broker in held.isr
                if broker in knowledge.brokers and knowledge.brokers[broker].epoch > written
            )
            if newcomers or not all(knowledge.serves(broker, key) for broker in held.isr):
                by_newcomers.setdefault(newcomers, []).append(key)
        for newcomers, keys in by_newcomers.items():
            await self.elect(keys, elect_proven(newcomers))

    async def give_first_leaders(self, keys: Sequence[TopicPartition]) -> None:
        """Open new partitions: the first live replica leads, all live ones are in sync."""
        knowledge = self._knowledge
        opened: dict[TopicPartition, Leadership] = {}
        for key in keys:
            assert knowledge.phase(key) is PartitionPhase.NEW
            serving = knowledge.serving(key)
            live = tuple(replica for replica in knowledge.replicas(key) if replica in serving)
            if live:
                opened[key] = Leadership(live[0], 0, live, 0)
            else:
                logger.warning("%s has no live replica: it stays without a leader", key)
        await self._make_parents({key.topic for key in opened})
        outcomes = await self._tree.write_each(
            [
                (
                    Create(nodes.partition_path(*key)),
                    Create(nodes.state_path(*key), self._encode(leadership)),
                )
                for key, leadership in opened.items()
            ]
        )
        for (key, leadership), outcome in zip(opened.items(), outcomes, strict=True):
            if isinstance(outcome, Exception):
                logger.error("%s could not be opened: %s", key, outcome)
                continue
            self._lead(key, leadership, new=True)

    async def elect_missing(self) -> None:
        """Try to give a leader to every partition that has none."""
        knowledge = self._knowledge
        wanting = [
            key
            for key in knowledge.partitions_in(PartitionPhase.NEW, PartitionPhase.OFFLINE)
            if key.topic not in knowledge.deleting
        ]
        new = [key for key in wanting if knowledge.phase(key) is PartitionPhase.NEW]
        await self.give_first_leaders(new)
        offline = [key for key in wanting if knowledge.phase(key) is PartitionPhase.OFFLINE]
        unelected = await self.elect(offline, elect_in_sync)
        unclean = [key for key in unelected if await self._allows_unclean(key.topic)]
        await self.elect(unclean, elect_any)

    async def elect(
        self, keys: Sequence[TopicPartition], election: Election
    ) -> list[TopicPartition]:
        """Hold elections; return the partitions for which nobody could be elected."""
        knowledge = self._knowledge
        unelected: list[TopicPartition] = []
        pending = list(keys)
        for _ in range(ATTEMPTS):
            elected: dict[TopicPartition, Leadership] = {}
            for key in pending:
                present = knowledge.leaderships[key]
                result = election(knowledge.replicas(key), present, knowledge.serving(key))
                if result is None:
                    unelected.append(key)
                else:
                    elected[key] = _next(present, result)
            pending = await self._write(elected)
            if not pending:
                return unelected
        logger.error("gave up the election of %d partitions: their nodes change", len(pending))
        return unelected + pending

    async def renew(self, keys: Sequence[TopicPartition]) -> None:
        """Begin a new epoch of the same leaders, so that everyone takes over a new assignment."""
        pending = list(keys)
        for _ in range(ATTEMPTS):
            present = {key: self._knowledge.leaderships[key] for key in pending}
            pending = await self._write(
                {key: held.led_by(held.leader, held.isr) for key, held in present.items()}
            )
            if not pending:
                return
        logger.error("%d partitions keep their epoch: their nodes change", len(pending))

    async def drop_from_isr(self, broker: int, keys: Sequence[TopicPartition]) -> None:
        """Take a broker out of the in-sync replicas; the last one stays, without leading."""
        pending = list(keys)
        for _ in range(ATTEMPTS):
            changed: dict[TopicPartition, Leadership] = {}
            for key in pending:
                present = self._knowledge.leaderships.get(key)
                if present is not None and broker in present.isr:
                    leader = -1 if present.leader == broker else present.leader
                    left = tuple(replica for replica in present.isr if replica != broker)
                    changed[key] = present.led_by(leader, left or present.isr)
            pending = await self._write(changed, without=broker)
            if not pending:
                return
        logger.error("broker %d stays in sync of %d partitions", broker, len(pending))

    def close(self, keys: Iterable[TopicPartition]) -> None:
        """Note that partitions have lost their leaders."""
        for key in keys:
            if self._knowledge.may_become(key, PartitionPhase.OFFLINE):
                self._knowledge.set_phase(key, PartitionPhase.OFFLINE)

    async def change(self, changed: dict[TopicPartition, Leadership]) -> list[TopicPartition]:
        """Write other in-sync replicas of the same epochs; return those whose node had changed.

        The leaders asked for it and hear it as their answer; everyone else needs to find it.
        """
        outcomes = await self._tree.write_each([self._set(*each) for each in changed.items()])
        stale = []
        for (key, leadership), outcome in zip(changed.items(), outcomes, strict=True):
            if isinstance(outcome, Exception):
                await self._reread(key)
                stale.append(key)
            else:
                self._knowledge.leaderships[key] = leadership
                self._outbox.tell(self._knowledge.brokers, [key])
        return stale

    async def _write(
        self, changed: dict[TopicPartition, Leadership], *, without: int | None = None
    ) -> list[TopicPartition]:
        """Write new leaderships and tell; return those whose node had changed meanwhile."""
        outcomes = await self._tree.write_each([self._set(*each) for each in changed.items()])
        again = []
        for (key, leadership), outcome in zip(changed.items(), outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self._lead(key, leadership, without=without)
            elif isinstance(outcome, BadVersion) and await self._reread(key):
                again.append(key)
            else:
                logger.error("the leader of %s could not be written: %s", key, outcome)
        return again

    def _lead(
        self,
        key: TopicPartition,
        leadership: Leadership,
        *,
        new: bool = False,
        without: int | None = None,
    ) -> None:
        knowledge = self._knowledge
        knowledge.leaderships[key] = leadership
        online = leadership.leader >= 0
        phase = PartitionPhase.ONLINE if online else PartitionPhase.OFFLINE
        knowledge.set_phase(key, phase)
        if key.topic in knowledge.deleting:
            return
        holders = [
            broker
            for broker in knowledge.replicas(key)
            if broker in knowledge.brokers and broker != without
        ]
        self._outbox.lead(holders, key, new=new)

    async def _reread(self, key: TopicPartition) -> bool:
        """Take over what another wrote; False when the node is gone."""
        found = await self._read(key)
        if found is not None:
            self._knowledge.leaderships[key] = found
        return found is not None

    async def _read(self, key: TopicPartition) -> Leadership | None:
        path = nodes.state_path(*key)
        try:
            data, stat = await self._tree.tree.get(path)
        except NoNode:
            return None
        state = nodes.PartitionState.decode(path, data)
        self._written[key] = stat.mzxid
        return Leadership(
            state.leader, state.leader_epoch, tuple(state.isr), stat.version, state.recovering
        )

    async def _make_parents(self, topics: Iterable[str]) -> None:
        outcomes = await self._tree.write_each(
            [(Create(nodes.partitions_path(topic)),) for topic in topics]
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, NodeExists):
                logger.error("partitions of a topic cannot be opened: %s", outcome)

    def _set(self, key: TopicPartition, leadership: Leadership) -> Change:
        return (
            Set(nodes.state_path(*key), self._encode(leadership), leadership.partition_epoch - 1),
        )

    def _encode(self, leadership: Leadership) -> bytes:
        return nodes.PartitionState(
            leadership.leader,
            leadership.leader_epoch,
            leadership.isr,
            self._epoch,
            leadership.recovering,
        ).encode()


def _next(present: Leadership, elected: Elected) -> Leadership:
    return present.led_by(elected.leader, elected.isr, recovering=elected.recovering)

"""Partition leaders: the first one, the next one, and none.

Every new leadership is written to the tree before any broker is notified, conditional on the
version last seen. If the node has changed meanwhile, it is read again and the election is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from barnabas.controller.causes import Cause
from barnabas.controller.counts import ControllerCounts
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
from barnabas.controller.state_changes import StateChanges
from barnabas.coordination.contract import BadVersion, Create, NodeExists, Set
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import NO_LEADER, TopicPartition

logger = logging.getLogger("barnabas.controller")

ATTEMPTS = 5
"""How often an election is repeated because the node changed meanwhile."""


class Partitions:
    """The leaderships of one controller's term."""

    def __init__(
        self,
        knowledge: Knowledge,
        tree: GuardedTree,
        outbox: Outbox,
        epoch: int,
        allow_unclean: Callable[[Collection[str]], Awaitable[Collection[str]]],
        state_changes: StateChanges,
        counts: ControllerCounts,
    ) -> None:
        self._counts = counts
        self._knowledge = knowledge
        self._tree = tree
        self._outbox = outbox
        self._epoch = epoch
        self._allow_unclean = allow_unclean
        self._state_changes = state_changes
        self._written: dict[TopicPartition, int] = {}
        """The transaction id that wrote each leadership, as of when it was read."""

    async def load(self, keys: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Read the leaderships of partitions, and set the phase of each.

        Return the partitions whose node is unreadable: nothing is known about them.
        """
        knowledge = self._knowledge
        found = await self._read(keys)
        for key, leadership in found.items():
            if leadership is None:
                knowledge.set_phase(key, PartitionPhase.NEW)
                continue
            knowledge.leaderships[key] = leadership
            online = knowledge.serves(leadership.leader, key)
            knowledge.set_phase(key, PartitionPhase.ONLINE if online else PartitionPhase.OFFLINE)
        return [key for key in keys if key not in found]

    async def account_for_lives(self, known: Mapping[int, int] | None) -> None:
        """Remove from the ISRs the brokers that left or restarted while there was no controller.

        A registration that the last controller did not process is not in `known`. Without `known`,
        a registration newer than a partition's node was unknown to the controller that wrote it.
        """
        knowledge = self._knowledge
        epochs = {broker: view.epoch for broker, view in knowledge.brokers.items()}
        unknown = {b for b, epoch in epochs.items() if known is None or known.get(b) != epoch}
        by_newcomers: dict[frozenset[int], list[TopicPartition]] = {}
        for key, written in self._written.items():
            held = knowledge.leaderships.get(key)
            if held is None or knowledge.goes(key.topic):
                continue
            newcomers = frozenset(
                broker
                for broker in held.isr
                if broker in epochs
                and (epochs[broker] > written if known is None else broker in unknown)
            )
            if newcomers or not all(knowledge.serves(broker, key) for broker in held.isr):
                by_newcomers.setdefault(newcomers, []).append(key)
        for newcomers, keys in by_newcomers.items():
            await self.elect(keys, elect_proven(newcomers), Cause.RESTARTED)

    async def give_first_leaders(self, keys: Sequence[TopicPartition]) -> None:
        """Bring new partitions online: the first live replica leads, all live ones are in sync."""
        knowledge = self._knowledge
        opened: dict[TopicPartition, Leadership] = {}
        for key in keys:
            assert knowledge.phase(key) is PartitionPhase.NEW
            serving = knowledge.serving(key)
            live = tuple(replica for replica in knowledge.replicas(key) if replica in serving)
            if live:
                opened[key] = Leadership(live[0], 0, live, 0)
            else:
                logger.warning("%s: no live replica, the partition stays offline", key)
        await self._make_parents(dict.fromkeys(key.topic for key in opened))
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
                logger.error("%s: could not write its first leader: %s", key, outcome)
                continue
            self._lead(key, leadership, Cause.FIRST, new=True)

    async def elect_missing(self, cause: Cause = Cause.BROKER_GONE) -> None:
        """Try to elect a leader for every partition that has none; `cause` is why it has none."""
        knowledge = self._knowledge
        wanting = [
            key
            for key in knowledge.partitions_in(PartitionPhase.NEW, PartitionPhase.OFFLINE)
            if not knowledge.goes(key.topic)
        ]
        new = [key for key in wanting if knowledge.phase(key) is PartitionPhase.NEW]
        await self.give_first_leaders(new)
        offline = [key for key in wanting if knowledge.phase(key) is PartitionPhase.OFFLINE]
        unelected = await self.elect(offline, elect_in_sync, cause)
        still = unelected
        if unelected:
            allowed = await self._allow_unclean(list(dict.fromkeys(k.topic for k in unelected)))
            tried = [key for key in unelected if key.topic in allowed]
            still = [key for key in unelected if key.topic not in allowed]
            still += await self.elect(tried, elect_any, cause)
        for key in still:
            self._state_changes.offline(key, cause)

    async def elect(
        self, keys: Sequence[TopicPartition], election: Election, cause: Cause
    ) -> list[TopicPartition]:
        """Elect leaders; return the partitions for which no leader could be elected."""
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
            pending = await self._write(elected, cause)
            if not pending:
                return unelected
        logger.error(
            "leader election given up: %d partitions keep changing in the tree", len(pending)
        )
        return unelected + pending

    async def renew(self, keys: Sequence[TopicPartition]) -> None:
        """Begin a new epoch with the same leaders, so that replicas learn a new assignment."""
        pending = list(keys)
        for _ in range(ATTEMPTS):
            present = {key: self._knowledge.leaderships[key] for key in pending}
            pending = await self._write(
                {key: held.led_by(held.leader, held.isr) for key, held in present.items()},
                Cause.REASSIGNMENT,
            )
            if not pending:
                return
        logger.error(
            "leader epoch not raised: %d partitions keep changing in the tree", len(pending)
        )

    async def drop_from_isr(
        self, broker: int, keys: Sequence[TopicPartition], cause: Cause
    ) -> None:
        """Remove a broker from the ISRs; the last in-sync replica stays, without leading."""
        pending = list(keys)
        for _ in range(ATTEMPTS):
            changed: dict[TopicPartition, Leadership] = {}
            for key in pending:
                present = self._knowledge.leaderships.get(key)
                if present is not None and broker in present.isr:
                    leader = NO_LEADER if present.leader == broker else present.leader
                    left = tuple(replica for replica in present.isr if replica != broker)
                    changed[key] = present.led_by(leader, left or present.isr)
            pending = await self._write(changed, cause, without=broker)
            if not pending:
                return
        logger.error(
            "broker %d: could not be removed from the ISR of %d partitions", broker, len(pending)
        )

    def close(self, keys: Iterable[TopicPartition]) -> None:
        """Mark partitions as offline."""
        for key in keys:
            if self._knowledge.may_become(key, PartitionPhase.OFFLINE):
                self._knowledge.set_phase(key, PartitionPhase.OFFLINE)

    async def change(self, changed: dict[TopicPartition, Leadership]) -> list[TopicPartition]:
        """Write new ISRs in the same epochs; return the partitions whose node had changed.

        The leaders asked for it and get it as their response; all other brokers are notified.
        """
        outcomes = await self._tree.write_each([self._set(*each) for each in changed.items()])
        stale = []
        for (key, leadership), outcome in zip(changed.items(), outcomes, strict=True):
            if isinstance(outcome, Exception):
                stale.append(key)
            else:
                self._knowledge.leaderships[key] = leadership
                self._outbox.update_metadata(self._knowledge.brokers, [key])
        await self._reread(stale)
        return stale

    async def _write(
        self,
        changed: dict[TopicPartition, Leadership],
        cause: Cause,
        *,
        without: int | None = None,
    ) -> list[TopicPartition]:
        """Write new leaderships and notify; return the partitions whose node had changed."""
        outcomes = await self._tree.write_each([self._set(*each) for each in changed.items()])
        overtaken = []
        for (key, leadership), outcome in zip(changed.items(), outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self._lead(key, leadership, cause, without=without)
            elif isinstance(outcome, BadVersion):
                overtaken.append(key)
            else:
                logger.error("%s: could not write its leader: %s", key, outcome)
        return await self._reread(overtaken)

    def _lead(
        self,
        key: TopicPartition,
        leadership: Leadership,
        cause: Cause,
        *,
        new: bool = False,
        without: int | None = None,
    ) -> None:
        knowledge = self._knowledge
        former = knowledge.leaderships.get(key)
        assert former is None or former.leader_epoch < leadership.leader_epoch, (former, leadership)
        knowledge.leaderships[key] = leadership
        self._state_changes.led(key, former, leadership, cause)
        self._counts.led(former, leadership, cause)
        online = leadership.leader >= 0
        phase = PartitionPhase.ONLINE if online else PartitionPhase.OFFLINE
        knowledge.set_phase(key, phase)
        if knowledge.goes(key.topic):
            return
        holders = [
            broker
            for broker in knowledge.replicas(key)
            if broker in knowledge.brokers and broker != without
        ]
        self._outbox.lead(holders, key, new=new)

    async def _reread(self, keys: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Reread partitions that changed meanwhile; return those whose node still exists."""
        there = []
        for key, found in (await self._read(keys)).items():
            if found is not None:
                self._knowledge.leaderships[key] = found
                there.append(key)
        return there

    async def _read(
        self, keys: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Leadership | None]:
        """Read nodes, None for a missing one; unreadable ones are left out."""
        paths = {key: nodes.state_path(*key) for key in keys}
        found = await self._tree.tree.get_many(list(paths.values()))
        leaderships: dict[TopicPartition, Leadership | None] = {}
        for (key, path), node in zip(paths.items(), found, strict=True):
            if node is None:
                leaderships[key] = None
                continue
            data, stat = node
            try:
                state = nodes.PartitionState.decode(path, data)
            except CorruptFileError as failure:
                logger.error("%s: state unreadable, partition ignored: %s", key, failure)
                continue
            self._written[key] = stat.mzxid
            leaderships[key] = Leadership(
                state.leader, state.leader_epoch, tuple(state.isr), stat.version, state.recovering
            )
        return leaderships

    async def _make_parents(self, topics: Iterable[str]) -> None:
        outcomes = await self._tree.write_each(
            [(Create(nodes.partitions_path(topic)),) for topic in topics]
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, NodeExists):
                logger.error("could not create the partition nodes of a topic: %s", outcome)

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

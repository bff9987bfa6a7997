"""One broker's term as the controller: from its election until another takes over.

A term handles one event at a time: a watch fired, a broker sent a request or a response. It
decides, writes the tree (guarded: once a successor has raised the epoch, every write fails with
ControllerMoved), and only then notifies brokers. Watches are set by the read of what they watch, so
no change in between is missed; an event that finds nothing new is harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from barnabas.controller.balance import Balance
from barnabas.controller.broker_registrations import ProcessedRegistrations, Roster, turnover
from barnabas.controller.catalogue import Catalogue
from barnabas.controller.causes import Cause
from barnabas.controller.counts import ControllerCounts
from barnabas.controller.deletion import Deletion
from barnabas.controller.election import elect_without
from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.isr_changes import Granted, IsrChanges, Wish
from barnabas.controller.knowledge import Knowledge, Replica
from barnabas.controller.notices import Notices
from barnabas.controller.outbox import Letter, Outbox
from barnabas.controller.partitions import Partitions
from barnabas.controller.phases import PartitionPhase, ReplicaPhase
from barnabas.controller.reassignment import Reassignment
from barnabas.controller.replica_state_machine import ReplicaStateMachine
from barnabas.controller.state_changes import StateChanges
from barnabas.controller.states import ControllerState, doing
from barnabas.controller.watches import Event, Watches
from barnabas.coordination.contract import Coordination
from barnabas.metadata import tree_schema as nodes
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH, TopicPartition, Uuid
from barnabas.model.note import NoteSink, unnoted

__all__ = ["Event", "Term"]

logger = logging.getLogger("barnabas.controller")


class Term:
    """The controller's state and actions during one term."""

    def __init__(
        self,
        tree: Coordination,
        broker_id: int,
        epoch: int,
        epoch_version: int,
        listener: str,
        *,
        post: Callable[[Event], None],
        allow_unclean: Callable[[Collection[str]], Awaitable[Collection[str]]],
        new_topic_id: Callable[[], Uuid],
        deletes_topics: bool,
        note: NoteSink = unnoted,
        counts: ControllerCounts | None = None,
    ) -> None:
        """Begin a term; `post` queues an event, which must run after the current one has ended.

        `allow_unclean` returns those of the given topics that allow unclean elections.
        `deletes_topics` is what delete.topic.enable says.
        """
        self.epoch = epoch
        self.state = ControllerState.IDLE
        """What kind of event is being handled; the host sets it back to idle."""
        self.knowledge = Knowledge()
        self._tree = tree
        self._watches = watches = Watches(post)
        guarded = GuardedTree(tree, epoch_version)
        self._registrations = ProcessedRegistrations(guarded)
        self._roster = Roster(tree, watches.on(self.brokers_changed))
        self._catalogue = Catalogue(guarded, new_topic_id, watches.on_child(self.topic_changed))
        self._failed_disks = Notices(
            guarded,
            nodes.LOG_DIR_EVENTS,
            nodes.decode_log_dir_event,
            watches.on(self.log_dir_events),
        )
        self._changed_isrs = Notices(
            guarded,
            nodes.ISR_CHANGES,
            nodes.decode_partitions,
            watches.on(self.isr_notifications),
        )
        self.outbox = Outbox(self.knowledge, broker_id, epoch, listener)
        self._partitions = Partitions(
            self.knowledge,
            guarded,
            self.outbox,
            epoch,
            allow_unclean,
            StateChanges(self.knowledge, epoch, note),
            counts or ControllerCounts(Registry()),
        )
        self._replicas = ReplicaStateMachine(self.knowledge, self.outbox, self._partitions)
        self._deletion = Deletion(
            self.knowledge,
            guarded,
            self.outbox,
            self._partitions,
            self._replicas,
            enabled=deletes_topics,
        )
        self.reassignment = Reassignment(
            self.knowledge,
            guarded,
            self.outbox,
            self._partitions,
            self._replicas,
            self._deletion,
        )
        self._isr_changes = IsrChanges(self.knowledge, self._partitions)
        self.balance = Balance(self.knowledge, guarded, self._partitions)

    def letters(self) -> list[Letter]:
        """Return the requests that the last event causes, in the order to send them."""
        return self.outbox.take()

    # -- starting ------------------------------------------------------------------------------

    @doing(ControllerState.CONTROLLER_CHANGE)
    async def begin(self) -> None:
        """Load all state, and finish what the last controller left undone."""
        knowledge = self.knowledge
        await self._failed_disks.clear()
        await self._changed_isrs.clear()
        known_lives = await self._registrations.known()
        knowledge.brokers = await self._roster.read()
        names = await self._tree.children(nodes.TOPICS, self._watches.on(self.topics_changed))
        await self._learn(names)
        # Before any election: a half-deleted topic must not be recreated.
        if self._deletion.enabled:
            going = await self._tree.children(nodes.DELETE_TOPICS)
            knowledge.deleting.update(name for name in going if name in knowledge.topics)
        self.outbox.update_metadata(knowledge.brokers)
        keys = list(knowledge.all_partitions)
        self._replicas.load(keys)
        self.outbox.update_metadata(knowledge.brokers, keys)
        # Before any leader is notified: coordinators treat a topic they do not know as deleted.
        self.outbox.seal()
        self._replicas.bring_online(
            (key, broker)
            for key in keys
            for broker in knowledge.replicas(key)
            if knowledge.serves(broker, key) and not knowledge.goes(key.topic)
        )
        await self._partitions.account_for_lives(known_lives)
        await self._registrations.deal_with(knowledge.brokers)
        await self._partitions.elect_missing()
        await self.deletions_changed()
        await self.reassignment.resume()
        await self.legacy_reassignment()
        await self.legacy_preferred_election()
        await self.log_dir_events()
        await self.isr_notifications()

    async def _learn(self, names: Iterable[str]) -> None:
        """Read topics that are new to this controller, with their leaders."""
        knowledge = self.knowledge
        found = await self._catalogue.read(names)
        knowledge.topics |= found
        keys = [key for name in found for key in knowledge.partitions_of(name)]
        unclear = await self._partitions.load(keys)
        for name in dict.fromkeys(key.topic for key in unclear):
            logger.error("topic %s: partition state unreadable, topic ignored", name)
            knowledge.forget_topic(name)

    # -- brokers ------------------------------------------------------------------------------

    @doing(ControllerState.BROKER_CHANGE)
    async def brokers_changed(self) -> None:
        """Brokers joined, left, restarted in between, or changed their addresses."""
        knowledge = self.knowledge
        present = await self._roster.read()
        gone, come, moved = turnover(knowledge.brokers, present)
        if gone:
            logger.info("brokers left: %s", gone)
            await self._brokers_gone(gone)
            self.outbox.seal()  # a returning broker must not stop what it creates now
        for broker in moved:
            knowledge.brokers[broker] = present[broker]
        if come:
            logger.info("brokers joined: %s", come)
            for broker in come:
                knowledge.brokers[broker] = present[broker]
            await self._brokers_come(come)
        elif moved:
            self.outbox.update_metadata(knowledge.brokers)
        if gone or come:
            await self._registrations.deal_with(knowledge.brokers)

    async def _brokers_gone(self, gone: Iterable[int]) -> None:
        knowledge = self.knowledge
        for broker in gone:
            knowledge.broker_gone(broker)
        replicas = [(key, b) for b in gone for key in knowledge.partitions_on(b)]
        await self._offline(replicas, Cause.BROKER_GONE)
        self.outbox.update_metadata(knowledge.brokers)

    async def _offline(self, replicas: list[Replica], cause: Cause) -> None:
        """Take replicas offline: others lead, and they leave the ISR."""
        knowledge = self.knowledge
        led = [
            key
            for key, broker in replicas
            if (held := knowledge.leaderships.get(key)) is not None and held.leader == broker
        ]
        self._partitions.close(led)
        await self._partitions.elect_missing(cause)
        staying = [r for r in replicas if not knowledge.goes(r[0].topic)]
        await self._replicas.take_offline(staying, cause)
        self._deletion.broker_gone([r for r in replicas if knowledge.goes(r[0].topic)])

    async def _brokers_come(self, come: Iterable[int]) -> None:
        knowledge = self.knowledge
        self.outbox.update_metadata(knowledge.brokers)
        self.outbox.update_metadata(come, knowledge.all_partitions)
        self.outbox.seal()  # as in `begin`
        replicas = [(key, broker) for broker in come for key in knowledge.partitions_on(broker)]
        self._replicas.bring_online(r for r in replicas if not knowledge.goes(r[0].topic))
        await self._partitions.elect_missing()
        await self.reassignment.resume(
            key for key in knowledge.moving if set(come) & set(knowledge.replicas(key))
        )
        for replica in replicas:
            if knowledge.replica_phase(replica) is ReplicaPhase.UNDELETABLE:
                knowledge.set_replica_phase(replica, ReplicaPhase.OFFLINE)
        await self._deletion.resume()

    @doing(ControllerState.CONTROLLED_SHUTDOWN)
    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move a broker's leaderships away from it; return the partitions it still leads.

        Raises the protocol's error for an unknown broker or broker epoch.
        """
        knowledge = self.knowledge
        view = knowledge.brokers.get(broker_id)
        if view is None:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not alive")
        if broker_epoch != NO_EPOCH and broker_epoch < view.epoch:
            raise RequestError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} has restarted")
        knowledge.shutting_down.add(broker_id)
        shared = [
            key
            for key in knowledge.partitions_on(broker_id)
            if len(knowledge.replicas(key)) > 1
            and key in knowledge.leaderships
            and not knowledge.goes(key.topic)
        ]
        led = [key for key in shared if knowledge.leaderships[key].leader == broker_id]
        cause = Cause.CONTROLLED_SHUTDOWN
        stuck = await self._partitions.elect(led, elect_without({broker_id}), cause)
        staying = set(stuck)
        stoppable = [(key, broker_id) for key in shared if key not in staying]
        await self._replicas.take_offline(
            [r for r in stoppable if knowledge.replica_phase(r) is ReplicaPhase.ONLINE], cause
        )
        return stuck

    # -- topics -------------------------------------------------------------------------------

    @doing(ControllerState.TOPIC_CHANGE)
    async def topics_changed(self) -> None:
        """Topics were created or deleted."""
        knowledge = self.knowledge
        names = await self._tree.children(nodes.TOPICS, self._watches.on(self.topics_changed))
        for name in sorted(knowledge.topics.keys() - names):
            knowledge.forget_topic(name)
        new = [name for name in names if name not in knowledge.topics]
        await self._learn(new)
        await self._open([key for name in new for key in knowledge.partitions_of(name)])

    @doing(ControllerState.TOPIC_CHANGE)
    async def topic_changed(self, name: str) -> None:
        """A topic's node changed: it may have more partitions."""
        known = self.knowledge.topics.get(name)
        found = (await self._catalogue.read([name])).get(name)
        if known is None or found is None:
            return
        if found.topic_id != known.topic_id:
            logger.warning("topic %s was deleted and recreated", name)
            self.knowledge.forget_topic(name)
            await self.topics_changed()
            return
        more = [
            TopicPartition(name, number)
            for number in sorted(found.partitions.keys() - known.partitions.keys())
        ]
        if more and name in self.knowledge.deleting:
            logger.warning("topic %s is being deleted, new partitions ignored", name)
            return
        for key in more:
            self.knowledge.assign(key, found.partitions[key.partition])
        await self._partitions.load(more)
        await self._open(more)

    async def _open(self, keys: Sequence[TopicPartition]) -> None:
        """Give new partitions their replicas and leaders."""
        knowledge = self.knowledge
        for key in keys:
            for broker in knowledge.replicas(key):
                knowledge.set_replica_phase((key, broker), ReplicaPhase.NEW)
        new = [key for key in keys if knowledge.phase(key) is PartitionPhase.NEW]
        opened = set(new)
        await self._partitions.give_first_leaders(new)
        led = [key for key in keys if key not in opened]
        if led:  # their state nodes already exist
            self._replicas.bring_online(
                (key, broker) for key in led for broker in knowledge.replicas(key)
            )
            await self._partitions.elect_missing()
        for key in keys:
            for broker in knowledge.replicas(key):
                online = knowledge.serves(broker, key)
                knowledge.set_replica_phase(
                    (key, broker), ReplicaPhase.ONLINE if online else ReplicaPhase.OFFLINE
                )

    @doing(ControllerState.TOPIC_DELETION)
    async def deletions_changed(self) -> None:
        """Topic deletions were requested."""
        names = await self._tree.children(
            nodes.DELETE_TOPICS, self._watches.on(self.deletions_changed)
        )
        if any(name not in self.knowledge.topics for name in names):
            await self.topics_changed()  # it may be so new that its event has not arrived yet
        await self._deletion.enqueue(names)

    # -- what brokers ask and answer ----------------------------------------------------------

    @doing(ControllerState.ISR_CHANGE)
    async def alter_partitions(
        self,
        broker_id: int,
        broker_epoch: int,
        wishes: Sequence[Wish],
        *,
        names_old_error: bool = False,
    ) -> ErrorCode | dict[TopicPartition, Granted]:
        """Change ISRs as their leaders request."""
        if not self.knowledge.lives(broker_id, broker_epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        answers = await self._isr_changes.alter(broker_id, wishes, names_old_error=names_old_error)
        for key, granted in answers.items():
            if granted.error is ErrorCode.NONE:
                await self.reassignment.isr_changed(key)
        return answers

    @doing(ControllerState.TOPIC_DELETION)
    async def stop_answered(
        self, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        """A broker has stopped and deleted replicas, or could not."""
        deleted = [(key, broker_id) for key, code in errors.items() if code is ErrorCode.NONE]
        failed = [(key, broker_id) for key, code in errors.items() if code is not ErrorCode.NONE]
        await self._deletion.answered(deleted, failed)

    @doing(ControllerState.RESPONSE_RECEIVED)
    async def roles_answered(
        self, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        """A broker has applied LeaderAndIsr; it could not serve replicas on a failed or full disk.

        Replicas that it could not serve before and can now are online again.
        """
        failed = [key for key, code in errors.items() if code is ErrorCode.KAFKA_STORAGE_ERROR]
        fresh = [key for key in failed if self.knowledge.serves(broker_id, key)]
        if fresh:
            self.knowledge.disk_failed(broker_id, fresh)
            await self._offline([(key, broker_id) for key in fresh], Cause.DIRECTORY_FAILED)
            self.outbox.update_metadata(self.knowledge.brokers, fresh)
        taken = [key for key, code in errors.items() if code is ErrorCode.NONE]
        back = self.knowledge.disk_works(broker_id, taken)
        if back:
            for key in back:
                self.knowledge.set_replica_phase((key, broker_id), ReplicaPhase.ONLINE)
            self.outbox.update_metadata(self.knowledge.brokers, back)
            await self._partitions.elect_missing()

    @doing(ControllerState.UNCLEAN_ELECTION_ENABLE)
    async def unclean_election_allowed(self) -> None:
        """A config changed: offline partitions may be able to elect a leader now."""
        await self._partitions.elect_missing()

    # -- notifications, and the requests of legacy tools ----------------------------------------

    @doing(ControllerState.LOG_DIR_CHANGE)
    async def log_dir_events(self) -> None:
        """Disks failed: their brokers are asked about all their replicas."""
        for broker in dict.fromkeys(await self._failed_disks.read()):
            for key in self.knowledge.partitions_on(broker):
                if not self.knowledge.goes(key.topic):  # it would be recreated
                    self.outbox.lead([broker], key)
        await self._failed_disks.remove()

    @doing(ControllerState.ISR_CHANGE)
    async def isr_notifications(self) -> None:
        """Brokers of old versions changed ISRs by themselves."""
        notices = await self._changed_isrs.read()
        changed = dict.fromkeys(TopicPartition(t, n) for each in notices for t, n, _ in each)
        keys = [key for key in changed if self.knowledge.assignment(key) is not None]
        await self._partitions.load(keys)
        self.outbox.update_metadata(self.knowledge.brokers, keys)
        for key in keys:
            await self.reassignment.isr_changed(key)
        await self._changed_isrs.remove()

    @doing(ControllerState.REASSIGNMENT)
    async def legacy_reassignment(self) -> None:
        """A reassignment was requested through the legacy node."""
        more = self._watches.on(self.legacy_reassignment)
        await self._tree.exists(nodes.LEGACY_REASSIGNMENT, more)
        await self.reassignment.take_legacy()

    @doing(ControllerState.MANUAL_LEADER_BALANCE)
    async def legacy_preferred_election(self) -> None:
        """A preferred leader election was requested through the legacy node."""
        more = self._watches.on(self.legacy_preferred_election)
        await self._tree.exists(nodes.LEGACY_PREFERRED_ELECTION, more)
        await self.balance.take_legacy()

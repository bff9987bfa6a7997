"""One broker's term as the controller: from its election until another takes over.

A term is told what happened, one event at a time: a watch fired, a broker asked for something, a
broker answered. It decides, writes the tree (guarded: a successor's epoch makes every write fail
with ControllerMoved), and only then are brokers told. Watches are set by the reads that look at
what they watch, so nothing that changes in between is missed; an event that finds nothing new is
harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from barnabas.controller import nodes
from barnabas.controller.balance import Balance
from barnabas.controller.cluster import BrokerView
from barnabas.controller.deletion import Deletion
from barnabas.controller.election import elect_without
from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.isr_changes import Granted, IsrChanges, Wish
from barnabas.controller.knowledge import Knowledge, Replica, Topic
from barnabas.controller.leadership import Assignment
from barnabas.controller.lives import Lives
from barnabas.controller.outbox import Letter, Outbox
from barnabas.controller.partitions import Partitions
from barnabas.controller.phases import PartitionPhase, ReplicaPhase
from barnabas.controller.reassignment import Reassignment
from barnabas.controller.replicas import Replicas
from barnabas.coordination.contract import Coordination, Delete, NoNode, Set, Watch
from barnabas.coordination.contract import Event as TreeEvent
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError, RequestError
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid

logger = logging.getLogger("barnabas.controller")

PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

Event = Callable[[], Awaitable[None]]


class Term:
    """What a controller knows and does while it is in office."""

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
    ) -> None:
        """Begin a term; `post` queues an event, which must run after the present one has ended.

        `allow_unclean` returns those of some topics that may lose records rather than wait.
        """
        self.epoch = epoch
        self.knowledge = Knowledge()
        self._tree = tree
        self._post = post
        self._new_topic_id = new_topic_id
        self._watches: dict[Event, Watch] = {}
        guarded = GuardedTree(tree, epoch_version)
        self._guarded = guarded
        self._lives = Lives(guarded)
        self.outbox = Outbox(self.knowledge, broker_id, epoch, listener)
        self._partitions = Partitions(self.knowledge, guarded, self.outbox, epoch, allow_unclean)
        self._replicas = Replicas(self.knowledge, self.outbox, self._partitions)
        self._deletion = Deletion(
            self.knowledge, guarded, self.outbox, self._partitions, self._replicas
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
        self.balance = Balance(self.knowledge, self._partitions)

    def letters(self) -> list[Letter]:
        """Return what the last event tells the brokers, in the order in which they must hear it."""
        return self.outbox.take()

    # -- taking office ------------------------------------------------------------------------

    async def begin(self) -> None:
        """Learn everything, and put in order what the last controller left undone."""
        knowledge = self.knowledge
        await self._clear(nodes.LOG_DIR_EVENTS)
        await self._clear(nodes.ISR_CHANGES)
        known_lives = await self._lives.known()
        knowledge.brokers = await self._read_brokers()
        names = await self._tree.children(nodes.TOPICS, self._watch(self.topics_changed))
        await self._learn(names)
        # Before anybody is elected: what a deletion has half removed must not be made again.
        going = await self._tree.children(nodes.DELETE_TOPICS)
        knowledge.deleting.update(name for name in going if name in knowledge.topics)
        self.outbox.tell(knowledge.brokers)
        keys = list(knowledge.all_partitions)
        self._replicas.load(keys)
        self.outbox.tell(knowledge.brokers, keys)
        # Before anyone leads: to a coordinator, a topic that it has not heard of is a deleted one.
        self.outbox.seal()
        self._replicas.bring_online(
            (key, broker)
            for key in keys
            for broker in knowledge.replicas(key)
            if knowledge.serves(broker, key) and key.topic not in knowledge.deleting
        )
        await self._partitions.account_for_lives(known_lives)
        await self._lives.deal_with(knowledge.brokers)
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
        found = await self._read_topics(names)
        knowledge.topics |= found
        keys = [key for name in found for key in knowledge.partitions_of(name)]
        unclear = await self._partitions.load(keys)
        for name in dict.fromkeys(key.topic for key in unclear):
            logger.error("topic %s is left alone", name)
            knowledge.forget_topic(name)

    async def _read_topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Read the assignments of topics; those that are gone, or make no sense, are left out."""
        paths = {name: nodes.topic_path(name) for name in names}
        found = await self._tree.get_many(list(paths.values()), self._hear_topic)
        topics: dict[str, Topic] = {}
        unnamed: dict[str, nodes.TopicAssignment] = {}
        for (name, path), got in zip(paths.items(), found, strict=True):
            if got is None:
                continue
            try:
                node = nodes.TopicAssignment.decode(path, got[0])
            except CorruptFileError as failure:
                logger.error("topic %s is left alone: %s", name, failure)
                continue
            if node.topic_id == ZERO_UUID:  # made before topics had ids
                node = nodes.TopicAssignment(
                    self._new_topic_id(), node.replicas, node.adding, node.removing
                )
                unnamed[path] = node
            topics[name] = Topic(node.topic_id, _assignments(node))
        for path, node in unnamed.items():
            await self._guarded.write([Set(path, node.encode())])
        return topics

    # -- brokers ------------------------------------------------------------------------------

    async def _read_brokers(self) -> dict[int, BrokerView]:
        names = await self._tree.children(nodes.BROKER_IDS, self._watch(self.brokers_changed))
        paths = {broker_id: nodes.broker_path(broker_id) for broker_id in sorted(map(int, names))}
        found = await self._tree.get_many(list(paths.values()), self._watch(self.brokers_changed))
        brokers: dict[int, BrokerView] = {}
        for (broker_id, path), got in zip(paths.items(), found, strict=True):
            if got is None:
                continue
            try:
                registration = nodes.BrokerRegistration.decode(path, got[0])
            except CorruptFileError as failure:
                logger.error("broker %d is left out: %s", broker_id, failure)
                continue
            brokers[broker_id] = broker_view(broker_id, registration, got[1].czxid)
        return brokers

    async def brokers_changed(self) -> None:
        """Brokers came, went, came back in between, or changed their addresses."""
        knowledge = self.knowledge
        present = await self._read_brokers()
        known = knowledge.brokers
        bounced = {
            broker
            for broker in present.keys() & known
            if present[broker].epoch != known[broker].epoch
        }
        gone = (known.keys() - present.keys()) | bounced
        come = (present.keys() - known.keys()) | bounced
        moved = {
            broker
            for broker in (present.keys() & known.keys()) - bounced
            if present[broker] != known[broker]
        }
        if gone:
            logger.info("brokers gone: %s", sorted(gone))
            await self._brokers_gone(gone)
            self.outbox.seal()  # a broker that is back must not be told to stop what it makes now
        for broker in moved:
            knowledge.brokers[broker] = present[broker]
        if come:
            logger.info("brokers come: %s", sorted(come))
            for broker in sorted(come):
                knowledge.brokers[broker] = present[broker]
            await self._brokers_come(come)
        elif moved:
            self.outbox.tell(knowledge.brokers)
        if gone or come:
            await self._lives.deal_with(knowledge.brokers)

    async def _brokers_gone(self, gone: Iterable[int]) -> None:
        knowledge = self.knowledge
        for broker in gone:
            knowledge.broker_gone(broker)
        await self._offline([(key, b) for b in gone for key in knowledge.partitions_on(b)])
        self.outbox.tell(knowledge.brokers)

    async def _offline(self, replicas: list[Replica]) -> None:
        """Replicas cannot be used any more: others lead, and they are not in sync."""
        knowledge = self.knowledge
        led = [
            key
            for key, broker in replicas
            if (held := knowledge.leaderships.get(key)) is not None and held.leader == broker
        ]
        self._partitions.close(led)
        await self._partitions.elect_missing()
        staying = [r for r in replicas if r[0].topic not in knowledge.deleting]
        await self._replicas.take_offline(staying)
        self._deletion.broker_gone([r for r in replicas if r[0].topic in knowledge.deleting])

    async def _brokers_come(self, come: Iterable[int]) -> None:
        knowledge = self.knowledge
        self.outbox.tell(knowledge.brokers)
        self.outbox.tell(come, knowledge.all_partitions)
        self.outbox.seal()  # as in `begin`
        replicas = [(key, broker) for broker in come for key in knowledge.partitions_on(broker)]
        self._replicas.bring_online(r for r in replicas if r[0].topic not in knowledge.deleting)
        await self._partitions.elect_missing()
        await self.reassignment.resume(
            key for key in knowledge.moving if set(come) & set(knowledge.replicas(key))
        )
        for replica in replicas:
            if knowledge.replica_phase(replica) is ReplicaPhase.UNDELETABLE:
                knowledge.set_replica_phase(replica, ReplicaPhase.OFFLINE)
        await self._deletion.resume()

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move what a broker leads away from it; return what it still leads.

        Raises the protocol's error for a broker, or a life of it, that is not known.
        """
        knowledge = self.knowledge
        view = knowledge.brokers.get(broker_id)
        if view is None:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, f"no live broker {broker_id}")
        if broker_epoch != -1 and broker_epoch < view.epoch:
            raise RequestError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} has restarted")
        knowledge.shutting_down.add(broker_id)
        shared = [
            key
            for key in knowledge.partitions_on(broker_id)
            if len(knowledge.replicas(key)) > 1 and key in knowledge.leaderships
        ]
        led = [key for key in shared if knowledge.leaderships[key].leader == broker_id]
        stuck = await self._partitions.elect(led, elect_without({broker_id}))
        staying = set(stuck)
        stoppable = [
            (key, broker_id)
            for key in shared
            if key not in staying and key.topic not in knowledge.deleting
        ]
        await self._replicas.take_offline(
            r for r in stoppable if knowledge.replica_phase(r) is ReplicaPhase.ONLINE
        )
        return stuck

    # -- topics -------------------------------------------------------------------------------

    async def topics_changed(self) -> None:
        """Topics were created, or are gone."""
        knowledge = self.knowledge
        names = await self._tree.children(nodes.TOPICS, self._watch(self.topics_changed))
        for name in [name for name in knowledge.topics if name not in names]:
            knowledge.forget_topic(name)
        new = [name for name in names if name not in knowledge.topics]
        await self._learn(new)
        await self._open([key for name in new for key in knowledge.partitions_of(name)])

    async def topic_changed(self, name: str) -> None:
        """A topic's node was written: it may have more partitions."""
        known = self.knowledge.topics.get(name)
        found = (await self._read_topics([name])).get(name)
        if known is None or found is None:
            return
        if found.topic_id != known.topic_id:
            logger.warning("topic %s was deleted and made again", name)
            self.knowledge.forget_topic(name)
            await self.topics_changed()
            return
        more = [
            TopicPartition(name, number)
            for number in sorted(found.partitions.keys() - known.partitions.keys())
        ]
        if more and name in self.knowledge.deleting:
            logger.warning("topic %s is being deleted: it gets no more partitions", name)
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
        if led:  # their states were there before: somebody prepared them
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

    async def deletions_changed(self) -> None:
        """The deletion of topics was asked for."""
        names = await self._tree.children(nodes.DELETE_TOPICS, self._watch(self.deletions_changed))
        await self._deletion.enqueue(names)

    # -- what brokers ask and answer ----------------------------------------------------------

    async def alter_partitions(
        self,
        broker_id: int,
        broker_epoch: int,
        wishes: Sequence[Wish],
        *,
        names_old_error: bool = False,
    ) -> ErrorCode | dict[TopicPartition, Granted]:
        """Change in-sync replicas as their leaders ask."""
        error = self._isr_changes.check_broker(broker_id, broker_epoch)
        if error is not ErrorCode.NONE:
            return error
        answers = await self._isr_changes.alter(broker_id, wishes, names_old_error=names_old_error)
        for key, granted in answers.items():
            if granted.error is ErrorCode.NONE:
                await self.reassignment.isr_changed(key)
        return answers

    async def stop_answered(
        self, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        """A broker has stopped and deleted replicas, or could not."""
        deleted = [(key, broker_id) for key, code in errors.items() if code is ErrorCode.NONE]
        failed = [(key, broker_id) for key, code in errors.items() if code is not ErrorCode.NONE]
        await self._deletion.answered(deleted, failed)

    async def roles_answered(
        self, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        """A broker has taken over its roles; those on a failed disk, or a full one, it could not.

        What it could not before and can now is served again.
        """
        failed = [key for key, code in errors.items() if code is ErrorCode.KAFKA_STORAGE_ERROR]
        fresh = [key for key in failed if self.knowledge.serves(broker_id, key)]
        if fresh:
            self.knowledge.disk_failed(broker_id, fresh)
            await self._offline([(key, broker_id) for key in fresh])
            self.outbox.tell(self.knowledge.brokers, fresh)
        taken = [key for key, code in errors.items() if code is ErrorCode.NONE]
        back = self.knowledge.disk_works(broker_id, taken)
        if back:
            for key in back:
                self.knowledge.set_replica_phase((key, broker_id), ReplicaPhase.ONLINE)
            self.outbox.tell(self.knowledge.brokers, back)
            await self._partitions.elect_missing()

    async def unclean_election_allowed(self) -> None:
        """A config changed: partitions without a leader may get one now."""
        await self._partitions.elect_missing()

    # -- notifications and the requests of the oldest tools ------------------------------------

    async def log_dir_events(self) -> None:
        """Disks failed: their brokers are asked about everything they hold."""
        names = await self._tree.children(nodes.LOG_DIR_EVENTS, self._watch(self.log_dir_events))
        paths = [f"{nodes.LOG_DIR_EVENTS}/{name}" for name in names]
        failed: dict[int, None] = {}
        for path, got in zip(paths, await self._tree.get_many(paths), strict=True):
            try:
                if got is not None:
                    failed[nodes.decode_log_dir_event(path, got[0])] = None
            except CorruptFileError as failure:
                logger.error("a log directory's event is passed over: %s", failure)
        for broker in failed:
            for key in self.knowledge.partitions_on(broker):
                self.outbox.lead([broker], key)
        await self._clear(nodes.LOG_DIR_EVENTS, names)

    async def isr_notifications(self) -> None:
        """Brokers of old versions changed in-sync replicas by themselves."""
        names = await self._tree.children(nodes.ISR_CHANGES, self._watch(self.isr_notifications))
        paths = [f"{nodes.ISR_CHANGES}/{name}" for name in names]
        changed: dict[TopicPartition, None] = {}
        for path, got in zip(paths, await self._tree.get_many(paths), strict=True):
            try:
                listed = nodes.decode_partitions(path, got[0]) if got is not None else []
            except CorruptFileError as failure:
                logger.error("a notice of in-sync replicas is passed over: %s", failure)
                continue
            for topic, number, _ in listed:
                changed[TopicPartition(topic, number)] = None
        keys = [key for key in changed if self.knowledge.assignment(key) is not None]
        await self._partitions.load(keys)
        self.outbox.tell(self.knowledge.brokers, keys)
        for key in keys:
            await self.reassignment.isr_changed(key)
        await self._clear(nodes.ISR_CHANGES, names)

    async def legacy_reassignment(self) -> None:
        """A reassignment was asked for by a node."""
        await self._tree.exists(nodes.LEGACY_REASSIGNMENT, self._watch(self.legacy_reassignment))
        try:
            await self.reassignment.take_legacy()
        except CorruptFileError as failure:
            logger.error("a reassignment is passed over: %s", failure)

    async def legacy_preferred_election(self) -> None:
        """An election of preferred leaders was asked for by a node."""
        path = nodes.LEGACY_PREFERRED_ELECTION
        await self._tree.exists(path, self._watch(self.legacy_preferred_election))
        try:
            data, _ = await self._tree.get(path)
        except NoNode:
            return
        try:
            listed = nodes.decode_partitions(path, data)
            await self.balance.elect_preferred(TopicPartition(t, n) for t, n, _ in listed)
        except CorruptFileError as failure:
            logger.error("an election is passed over: %s", failure)
        await self._guarded.write([Delete(path)])

    async def _clear(self, parent: str, names: Iterable[str] | None = None) -> None:
        """Remove notifications that were read, or are of an older controller's time."""
        found = await self._tree.children(parent) if names is None else names
        await self._guarded.write_each([(Delete(f"{parent}/{name}"),) for name in found])

    def _watch(self, event: Event) -> Watch:
        """Return the one watch for an event: set again, it still fires once for one change."""
        watch = self._watches.get(event)
        if watch is None:
            watch = self._watches[event] = lambda _: self._post(event)
        return watch

    def _hear_topic(self, event: TreeEvent) -> None:
        name = event.path.rsplit("/", 1)[1]
        self._post(lambda: self.topic_changed(name))


def broker_view(broker_id: int, registration: nodes.BrokerRegistration, epoch: int) -> BrokerView:
    """Return a broker as its registration describes it."""
    return BrokerView(
        broker_id,
        {name: (host, port) for name, host, port in registration.endpoints},
        registration.rack,
        epoch,
        {name: PROTOCOLS.get(text, 0) for name, text in registration.protocols.items()},
    )


def _assignments(node: nodes.TopicAssignment) -> dict[int, Assignment]:
    return {
        number: Assignment(
            tuple(replicas),
            tuple(node.adding.get(number, ())),
            tuple(node.removing.get(number, ())),
        )
        for number, replicas in node.replicas.items()
    }

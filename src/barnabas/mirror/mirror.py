"""A mirror: sessions, one after another, until one is done or a failure is final.

A session is one run, from taking over from its predecessor to a failure or the end:

    start    a transactional producer ends the transaction that an earlier session has left open,
             and fences that session and its shards; then the positions are read, up to the end
    copy     by a copier, in this process or in others, always records and positions in one
             transaction

All state is in the positions topic, so a session recovers from a failure of the one before exactly
as a new process recovers from a kill.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff
from barnabas.mirror.checkpoints import take_over
from barnabas.mirror.clusters import SourceLogs, open_clusters, start_client
from barnabas.mirror.copier import IDLE_MS, now_ms
from barnabas.mirror.engine import Copier, Engine, MirrorOptions, SessionContext
from barnabas.mirror.failures import is_fenced, is_retriable
from barnabas.mirror.positions import TOPIC_CONFIGS, TOPIC_PREFIX, MirrorPositions
from barnabas.mirror.progress import MirrorProgress
from barnabas.mirror.replication_policy import ReplicationFlow
from barnabas.mirror.topic_sync import TopicPlan, sync_topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RetriableError
from barnabas.model.ids import TopicPartition


class TargetLagsError(RetriableError):
    """The producer does not know a new partition yet; the next session checks again."""


class MirrorSession:
    """One run; `progress` outlives it, `notify` is called with messages for the user.

    `began` is set once both clusters have responded and the mirror's producer has started.
    """

    def __init__(
        self,
        options: MirrorOptions,
        engine: Engine,
        progress: MirrorProgress,
        notify: Callable[[str], None],
    ) -> None:
        self._options = options
        self._engine = engine
        self._progress = progress
        self._notify = notify
        self.began = False
        self._positions = MirrorPositions()
        self._topic_ids: dict[TopicPartition, str] = {}
        self._ends: dict[TopicPartition, int] | None = None
        self._sync_at_ms = 0.0

    async def run(self) -> None:
        """Copy until caught up, if that is an option, or until it is cancelled or fails."""
        async with AsyncExitStack() as stack:
            options = self._options
            source, target, source_id, target_id = await stack.enter_async_context(
                open_clusters(options.source, options.target, options.topics)
            )
            topic = TOPIC_PREFIX + (options.name or source_id)
            flow = ReplicationFlow(source_id, target_id, topic, options.topics.prefix)
            await self._create_positions_topic(target, topic)
            producer = await start_client(stack, AIOKafkaProducer(**options.target.producer(topic)))
            self.began = True
            number = await take_over(target, flow, producer, shared=self._engine.shared)
            await self._read_positions(target, topic)
            self._context = SessionContext(
                options,
                flow,
                SourceLogs(source, options.source),
                target,
                producer,
                self._positions,
                number,
                self._progress,
                self._notify,
            )
            self._copier: Copier = await self._engine.open(self._context, stack)
            await self._sync_topics()
            await self._copy()

    # Starting.

    async def _create_positions_topic(self, target: ClusterClient, topic: str) -> None:
        new = NewTopic(topic, 1, self._options.replication_factor, {}, TOPIC_CONFIGS)
        [created] = await create_topics(target, [new])
        if created.error is not None and created.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise created.error

    async def _read_positions(self, target: ClusterClient, topic: str) -> None:
        """Read what this mirror has committed; all its transactions have ended by now."""
        partition = TopicPartition(topic, 0)
        start = (await list_offsets(target, {partition: EARLIEST}))[partition].offset
        end = (await list_offsets(target, {partition: LATEST}))[partition].offset
        async with AsyncExitStack() as stack:
            consumer = AIOKafkaConsumer(**self._options.target.target_consumer)
            consumer.assign([partition])
            consumer = await start_client(stack, consumer)
            consumer.seek(partition, start)
            while await consumer.position(partition) < end:
                for record in (await consumer.getmany(timeout_ms=IDLE_MS)).get(partition, ()):
                    self._positions.load(record.key, record.value)

    # Topics.

    async def _sync_topics(self) -> None:
        """Create and change topics of the target; copy new partitions from their start."""
        options, context = self._options, self._context
        synced = await sync_topics(
            context.source.client,
            context.target,
            options.topics,
            replication_factor=options.replication_factor,
        )
        self._notify_of_changes(synced.plan)
        self._sync_at_ms = now_ms() + options.refresh_interval_ms
        if synced.partitions == self._topic_ids:
            return
        partitions = synced.partitions
        await self._check_target(partitions)
        starts = {
            each: self._positions.find(each, topic_id)
            for each, topic_id in partitions.items()
            if self._topic_ids.get(each) != topic_id
        }
        found = {each: offset for each, offset in starts.items() if offset is not None}
        new = [each for each, offset in starts.items() if offset is None]
        # Only a mirror that has never run may skip existing records.
        from_end = options.from_end and not self._positions
        source = context.source
        list_starts = source.end_offsets if from_end else source.start_offsets
        for each, offset in (await list_starts(new)).items():
            found[each] = offset
            self._positions.move(each, offset, partitions[each])
        self._topic_ids = partitions
        self._progress.partitions = len(partitions)
        self._progress.topics = len({each.topic for each in partitions})
        # Committed at once: the next session must not choose other starts.
        await self._write_positions()
        await self._copier.assign(partitions, found)
        if self._ends is None and options.until_caught_up:
            self._ends = await source.end_offsets(partitions)

    async def _write_positions(self) -> None:
        if not self._positions.changed:
            return
        producer, topic = self._context.producer, self._context.flow.positions_topic
        await producer.begin_transaction()
        await producer.send_many(topic, self._positions.rows(), partition=0)
        await producer.commit_transaction()
        self._positions.written()

    async def _check_target(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise if the producer does not know all target partitions."""
        known: dict[str, set[int]] = {}
        for each in partitions:
            name, index = self._context.flow.target_of(each)
            if name not in known:
                known[name] = await self._context.producer.partitions_for(name)
            if index not in known[name]:
                raise TargetLagsError(f"the producer does not know partition {name}-{index} yet")

    def _notify_of_changes(self, plan: TopicPlan) -> None:
        for name, shape in plan.create.items():
            self._notify(f"created topic {name} with {shape.partitions} partitions")
        for name, count in plan.grow.items():
            self._notify(f"topic {name}: increased to {count} partitions")
        for name, options in plan.configure.items():
            changes = ", ".join(f"{option}={value}" for option, value in options.items())
            self._notify(f"topic {name}: {changes}")

    # Copying.

    async def _copy(self) -> None:
        while True:
            if now_ms() >= self._sync_at_ms:
                await self._sync_topics()
            busy = await self._copier.step()
            self._progress.lag = self._copier.lag()
            if not busy and await self._caught_up():
                if self._progress.lag is None:
                    self._progress.lag = 0  # nothing was fetched because nothing was left
                return

    async def _caught_up(self) -> bool:
        if self._ends is None:
            return False
        for partition, end in self._ends.items():
            if partition in self._topic_ids and await self._copier.position(partition) < end:
                return False
        return True


class Mirror:
    """Runs sessions; `progress` may be read at any time."""

    def __init__(
        self,
        options: MirrorOptions,
        engine: Engine,
        *,
        backoff: Backoff,
        timeout_ms: float,
        notify: Callable[[str], None],
        now_ms: float,
    ) -> None:
        self.progress = MirrorProgress(now_ms)
        self._options = options
        self._engine = engine
        self._backoff = backoff
        self._timeout_ms = timeout_ms
        self._notify = notify

    async def run(self) -> None:
        """Copy until done; raise final failures, and retriable ones after `timeout_ms`."""
        loop = asyncio.get_running_loop()
        failures, since_s, before = 0, 0.0, 0
        began = False
        while True:
            session = MirrorSession(self._options, self._engine, self.progress, self._notify)
            try:
                await session.run()
                return
            except BarnabasError as failure:
                if is_fenced(failure):
                    failure.add_note(
                        "another mirror of this name has started, or this one was suspended for "
                        "longer than transaction.timeout.ms; each mirror needs a --name of its own"
                    )
                # An address that never responded is more likely wrong than its cluster down.
                began = began or session.began
                if not began or not is_retriable(failure):
                    raise
                if not failures or self.progress.transactions > before:
                    failures, since_s = 0, loop.time()
                before = self.progress.transactions
                failures += 1
                pause_ms = self._backoff.delay_ms(failures)
                if (loop.time() - since_s) * 1000 + pause_ms > self._timeout_ms:
                    raise
                self.progress.restarts += 1
                self._notify(f"{failure}; restarting from the committed positions")
                await asyncio.sleep(pause_ms / 1000)

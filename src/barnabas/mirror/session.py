"""One run of a mirror, from taking over its predecessor to a failure or the end.

    start    a transactional producer ends what an earlier run of this mirror has left open, and
             shuts that run out if it still lives; so are its lanes, if it had any; then the
             positions are read, up to the end
    copy     by a mover: in this process or in others, always records and positions in one
             transaction

Nothing is kept that the positions topic does not hold, so a failure anywhere is met by another
session, exactly as a kill is by another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.copying import IDLE_MS, now_ms
from barnabas.mirror.following import Followed, follow_topics
from barnabas.mirror.ground import Engine, Ground, MirrorOptions, Mover
from barnabas.mirror.marks import take_over
from barnabas.mirror.opening import clusters, started
from barnabas.mirror.positions import TOPIC_CONFIGS, TOPIC_PREFIX, Positions
from barnabas.mirror.progress import Progress
from barnabas.mirror.route import Route
from barnabas.mirror.source import Source
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RetriableError
from barnabas.model.ids import TopicPartition


class TargetLagsError(RetriableError):
    """The producer has not heard of a partition yet; one that is started anew asks again."""


class Session:
    """One run; `progress` outlives it, `tell` hears what a person should know.

    `began` says that both clusters were reached and asked for the same mirror.
    """

    def __init__(
        self,
        options: MirrorOptions,
        engine: Engine,
        progress: Progress,
        tell: Callable[[str], None],
    ) -> None:
        self._options = options
        self._engine = engine
        self._progress = progress
        self._tell = tell
        self.began = False
        self._positions = Positions()
        self._topic_ids: dict[TopicPartition, str] = {}
        self._ends: dict[TopicPartition, int] | None = None
        self._follow_at_ms = 0.0

    async def run(self) -> None:
        """Copy until caught up, if that was asked for, or until it is cancelled or fails."""
        async with AsyncExitStack() as stack:
            options = self._options
            source, target, source_id, target_id = await stack.enter_async_context(
                clusters(options.source, options.target, options.selection)
            )
            topic = TOPIC_PREFIX + (options.name or source_id)
            route = Route(source_id, target_id, topic, options.selection.prefix)
            await self._make_positions_topic(target, topic)
            producer = await started(stack, AIOKafkaProducer(**options.target.producer(topic)))
            self.began = True
            number = await take_over(target, route, producer, shared=self._engine.shared)
            await self._read_positions(target, topic)
            self._ground = Ground(
                options,
                route,
                Source(source, options.source),
                target,
                producer,
                self._positions,
                number,
                self._progress,
                self._tell,
            )
            self._mover: Mover = self._engine.mover(self._ground)
            await self._mover.start(stack)
            await self._follow()
            await self._copy()

    # The start.

    async def _make_positions_topic(self, target: ClusterClient, topic: str) -> None:
        new = NewTopic(topic, 1, self._options.replication_factor, {}, TOPIC_CONFIGS)
        [created] = await create_topics(target, [new])
        if created.error is not None and created.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise created.error

    async def _read_positions(self, target: ClusterClient, topic: str) -> None:
        """Read what this mirror has committed; its own transactions are all ended by now."""
        place = TopicPartition(topic, 0)
        start = (await list_offsets(target, {place: EARLIEST}))[place].offset
        end = (await list_offsets(target, {place: LATEST}))[place].offset
        async with AsyncExitStack() as stack:
            consumer = AIOKafkaConsumer(**self._options.target.reader)
            consumer.assign([place])
            consumer = await started(stack, consumer)
            consumer.seek(place, start)
            while await consumer.position(place) < end:
                for record in (await consumer.getmany(timeout_ms=IDLE_MS)).get(place, ()):
                    self._positions.load(record.key, record.value)

    # Topics.

    async def _follow(self) -> None:
        """Look for new topics, partitions and options, and read what is new from its start."""
        options, ground = self._options, self._ground
        followed = await follow_topics(
            ground.source.client,
            ground.target,
            options.selection,
            replication_factor=options.replication_factor,
        )
        self._tell_changes(followed)
        self._follow_at_ms = now_ms() + options.refresh_interval_ms
        if followed.partitions == self._topic_ids:
            return
        partitions = followed.partitions
        await self._check_target(partitions)
        starts = {
            each: self._positions.find(each, topic_id)
            for each, topic_id in partitions.items()
            if self._topic_ids.get(each) != topic_id
        }
        found = {each: offset for each, offset in starts.items() if offset is not None}
        asked = [each for each, offset in starts.items() if offset is None]
        # Only a mirror that has never run may skip what is there already.
        from_end = options.from_end and not self._positions
        where = ground.source.ends if from_end else ground.source.begins
        for each, offset in (await where(asked)).items():
            found[each] = offset
            self._positions.move(each, offset, partitions[each])
        self._topic_ids = partitions
        self._progress.partitions = len(partitions)
        self._progress.topics = len({each.topic for each in partitions})
        # Written down at once: whoever comes next must not choose other starts.
        await self._write_positions()
        await self._mover.assign(partitions, found)
        if self._ends is None and options.until_caught_up:
            self._ends = await ground.source.ends(partitions)

    async def _write_positions(self) -> None:
        if not self._positions.changed:
            return
        producer, topic = self._ground.producer, self._ground.route.positions_topic
        await producer.begin_transaction()
        await producer.send_many(topic, self._positions.rows(), partition=0)
        await producer.commit_transaction()
        self._positions.written()

    async def _check_target(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise if the producer does not know all that is to be written to."""
        known: dict[str, set[int]] = {}
        for each in partitions:
            name, index = self._ground.route.target_of(each)
            if name not in known:
                known[name] = await self._ground.producer.partitions_for(name)
            if index not in known[name]:
                raise TargetLagsError(f"partition {index} of {name} is new to the producer")

    def _tell_changes(self, followed: Followed) -> None:
        plan = followed.plan
        for name, shape in plan.create.items():
            self._tell(f"created topic {name} with {shape.partitions} partitions")
        for name, count in plan.grow.items():
            self._tell(f"topic {name} has {count} partitions now")
        for name, options in plan.configure.items():
            told = ", ".join(f"{option}={value}" for option, value in options.items())
            self._tell(f"topic {name}: {told}")

    # Copying.

    async def _copy(self) -> None:
        while True:
            if now_ms() >= self._follow_at_ms:
                await self._follow()
            busy = await self._mover.step()
            self._progress.lag = self._mover.lag()
            if not busy and await self._caught_up():
                if self._progress.lag is None:
                    self._progress.lag = 0  # nothing was fetched because nothing was left
                return

    async def _caught_up(self) -> bool:
        if self._ends is None:
            return False
        for partition, end in self._ends.items():
            if partition in self._topic_ids and await self._mover.position(partition) < end:
                return False
        return True

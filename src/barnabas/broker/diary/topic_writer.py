"""Writes the entries of this broker to the topic `__barnabas_diary`, which keeps them.

The topic has one partition, so that a reader has the diary of the whole cluster in one order, and
is replicated as the offsets topic is. Entries are written in batches, some time after they were
made, and never wait for anything but the topic: without a leader they queue up to a limit, and what
is beyond is dropped and counted. An entry that was repeated is written once more, under the same
key, when no further repeats are folded into it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.broker.loop import spawn
from barnabas.config.broker import BrokerOptions
from barnabas.diary.catalogue import EVENTS
from barnabas.diary.entry import Entry
from barnabas.diary.ring import FOLD_MS
from barnabas.kernels import BatchBuilder
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.catalogue.diary import DROPPED
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.broker")

LINGER_S = 0.5
"""How long an entry waits for others."""
RETRY_S_MIN = 0.5
RETRY_S_MAX = 30.0
QUEUE_MAX = 10_000
BATCH_ENTRIES = 500
BATCH_BYTES = 500_000
TIMEOUT_MS = 5_000
SEGMENT_BYTES = 16 * 1024 * 1024
RETENTION_BYTES = 256 * 1024 * 1024
"""A limit for a cluster in which very much happens; a usual diary is far smaller."""
LEADER_ONLY = 1
"""Acks: an entry is worth no wait for followers, which copy it soon."""


def diary_topic(options: BrokerOptions) -> NewTopic:
    """Return the topic that keeps the diary."""
    return NewTopic(
        DIARY_TOPIC,
        1,
        options.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.bytes": str(RETENTION_BYTES),
            "retention.ms": str(options.barnabas_diary_retention_ms),
            "segment.bytes": str(SEGMENT_BYTES),
        },
    )


class TopicWriter:
    """Keeps the entries of one broker in the diary's topic."""

    def __init__(
        self,
        broker_id: int,
        run: int,
        cluster: ClusterView,
        metrics: Registry,
        now_ms: Callable[[], int],
        *,
        new_topic: Callable[[], NewTopic],
        create_topic: Callable[[NewTopic], Awaitable[None]],
        append: Callable[[bytes], None],
        ask: Callable[[int, Message, int], Awaitable[ProduceResponse]],
    ) -> None:
        """Begin idle.

        `run` distinguishes the entries of this start of the broker from those of others. `append`
        appends a batch to the topic's partition if this broker leads it, `ask` sends a request to
        the broker that does.
        """
        self._broker_id = broker_id
        self.own_keys = f"{broker_id}.{run}."
        """What the keys of this start's records begin with."""
        self._cluster = cluster
        self._dropped = metrics.counter(DROPPED)
        self._now_ms = now_ms
        self._new_topic = new_topic
        self._create_topic = create_topic
        self._append = append
        self._ask = ask
        self._queue: dict[int, Entry] = {}
        """Entries to write, by number, the oldest first."""
        self._repeated: dict[int, Entry] = {}
        """Entries that were written, and have been repeated since."""
        self._written = 0
        """The number of the last entry that was written."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._pause_s = RETRY_S_MIN
        self._stopped = False
        self._reported = False

    def take(self, entry: Entry) -> None:
        """Queue an entry, or a repeat of one."""
        if self._stopped:
            return
        if entry.number <= self._written and entry.number not in self._queue:
            self._repeated[entry.number] = entry
        else:
            self._queue[entry.number] = entry
            self._bound()
        self._schedule(LINGER_S)

    async def ensure_topic(self) -> None:
        """Create the diary's topic, unless it exists."""
        if self._cluster.topic(DIARY_TOPIC) is None:
            await self._create_topic(self._new_topic())

    async def flush(self, timeout_s: float = 1.0) -> None:
        """Write what is there, if that is possible soon: the broker is about to stop."""
        if self._cluster.topic(DIARY_TOPIC) is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                while batch := self._batch(ended=True):
                    await self._write(batch)
        except (BarnabasError, TimeoutError, OSError) as failure:
            logger.debug("diary: the last entries were not written: %s", failure)

    async def stop(self) -> None:
        """Write nothing more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- inside

    def _schedule(self, delay_s: float) -> None:
        if self._timer is None and self._task is None and not self._stopped:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._start)

    def _start(self) -> None:
        self._timer = None
        self._task = spawn(self._work(), "the diary")

    async def _work(self) -> None:
        try:
            delay_s = await self._write_all()
        finally:
            self._task = None
        if delay_s is not None:
            self._schedule(delay_s)

    async def _write_all(self) -> float | None:
        """Write what is due; return when to go on, None with the next entry."""
        if self._cluster.topic(DIARY_TOPIC) is None and not self._is_worth_a_topic():
            return None
        try:
            while batch := self._batch():
                await self.ensure_topic()
                await self._write(batch)
                self._pause_s, self._reported = RETRY_S_MIN, False
        except (BarnabasError, OSError, TimeoutError) as failure:
            if not self._reported:
                self._reported = True
                logger.info("diary: not written, %d entries wait: %s", len(self._queue), failure)
            pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, RETRY_S_MAX)
            return pause_s
        return FOLD_MS / 1000 if self._repeated else None

    def _is_worth_a_topic(self) -> bool:
        """Return whether something happened that does not belong to every start."""
        return any(not EVENTS[entry.event].routine for entry in self._queue.values())

    def _batch(self, *, ended: bool = False) -> list[Entry]:
        """Return the next entries to write; repeated ones once their time is over, or now."""
        now_ms = self._now_ms()
        for number, entry in list(self._repeated.items()):
            if ended or now_ms - entry.at_ms >= FOLD_MS:
                del self._repeated[number]
                self._queue[number] = entry
        return list(self._queue.values())[:BATCH_ENTRIES]

    async def _write(self, entries: list[Entry]) -> None:
        """Write entries to the topic's leader; raise if that is not possible now."""
        topic = self._cluster.topic(DIARY_TOPIC)
        if topic is None or topic.partitions[0].leader < 0:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{DIARY_TOPIC} has no leader")
        builder = BatchBuilder()
        size = 0
        counts: dict[int, int] = {}
        for entry in entries:
            value = entry.encode()
            if counts and size + len(value) > BATCH_BYTES:
                break
            size += len(value)
            counts[entry.number] = entry.count
            key = f"{self.own_keys}{entry.number}".encode()
            builder.append_many([(entry.last_ms, key, value, ())])
        batch = bytes(builder.finish())
        leader = topic.partitions[0].leader
        if leader == self._broker_id:
            self._append(batch)
        else:
            data = TopicProduceData(
                name=DIARY_TOPIC,
                topic_id=topic.topic_id,
                partition_data=[PartitionProduceData(index=0, records=batch)],
            )
            request = ProduceRequest(acks=LEADER_ONLY, timeout_ms=TIMEOUT_MS, topic_data=[data])
            response = await self._ask(leader, request, TIMEOUT_MS)
            [answered] = response.responses
            code = ErrorCode.of(answered.partition_responses[0].error_code)
            if code is not ErrorCode.NONE:
                raise RequestError(code, f"broker {leader}: {code.name}")
        for number, count in counts.items():
            written = self._queue.pop(number, None)
            self._written = max(self._written, number)
            if written is not None and written.count > count:
                self._repeated[number] = written  # while it was being written

    def _bound(self) -> None:
        """Drop the oldest entry if too many wait."""
        if len(self._queue) > QUEUE_MAX:
            del self._queue[next(iter(self._queue))]
            self._dropped.add()

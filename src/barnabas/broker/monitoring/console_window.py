"""The console's window into this broker; `barnabas.console.window` declares it.

Its samples exist only while there is a console: a timer of a quarter of a second measures the loop,
and every five seconds the counts are looked at. What walks partitions does so in slices.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from math import ceil

from barnabas.broker.loop import offload, spawn
from barnabas.broker.monitoring.log_states import log_states
from barnabas.broker.monitoring.request_view import RequestView
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.storage.logs import Logs
from barnabas.diary.concerns import Concerns
from barnabas.logging.line_ring import LineRing
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.registry import Registry
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.observations import (
    BrokerSeen,
    Diary,
    Directory,
    Health,
    LogLine,
    LogState,
    Replicas,
    RequestsSeen,
    RequestTimes,
    Sample,
    TopicClient,
    TopicCounts,
)

logger = logging.getLogger("barnabas.console")

SAMPLE_S = 5.0
SAMPLES_MAX = 720
"""An hour."""
TICK_S = 0.25
SLICE = 1000
"""Partitions that are looked at before the loop may run again."""
NAMED_MAX = 100
SPACE_EVERY = 6
"""Samples between two looks at the disks."""
TIMES = "kafka_network_requestmetrics_totaltimems"
CONSUMER_FETCHES = ("FetchConsumer", "Fetch")

Buckets = list[tuple[int, int]]


class ConsoleWindow:
    """What this broker's process knows of itself, kept for an hour."""

    def __init__(
        self,
        broker_id: int,
        version: str,
        registry: Registry,
        cluster: ClusterView,
        partitions: HostedPartitions,
        logs: Logs,
        *,
        wall_ms: Callable[[], int],
        is_silent: Callable[[], bool],
        reached_by: Callable[[], tuple[str, str]],
        diary: Callable[[int, Concerns | None], Awaitable[Diary]] | None = None,
        lag_seconds: Callable[[str], Mapping[tuple[str, int], float]] | None = None,
        behind: Callable[[], Awaitable[Sequence[tuple[str, float]]]] | None = None,
        requests: RequestView | None = None,
    ) -> None:
        """`reached_by` names the listener whose addresses are shown, and this broker's own host."""
        self._broker_id = broker_id
        self._version = version
        self._registry = registry
        self._cluster = cluster
        self._partitions = partitions
        self._logs = logs
        self._wall_ms = wall_ms
        self._is_silent = is_silent
        self._reached_by = reached_by
        self._diary = diary
        self._lag_seconds = lag_seconds
        self._behind = behind
        self._requests = requests
        self._lines = LineRing()
        self._started_ms = wall_ms()
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._directories: list[Directory] = []
        self._health = self._without_partitions()
        self._before: _Counts | None = None
        self._looks = 0
        self._longest_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None

    # what pages read

    @property
    def version(self) -> str:
        """The version of Barnabas."""
        return self._version

    @property
    def started_ms(self) -> int:
        """When this began to look."""
        return self._started_ms

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        return self._cluster.cluster_id

    def history(self) -> Sequence[Sample]:
        """Return the samples, oldest first."""
        return list(self._samples)

    def value(self, metric: str, *labels: str) -> float | None:
        """Return the value of a counter or gauge by its exposed name."""
        for each, instruments in self._registry.families():
            if each.name == metric:
                for values, instrument in instruments:
                    if values == labels and not isinstance(instrument, Histogram):
                        return instrument.value
        return None

    def request_times(self) -> Sequence[RequestTimes]:
        """Return how many requests there were, and their recent times, the most frequent first."""
        found = []
        for api, histogram in self._times():
            count = histogram.count
            if count:
                median, p99, largest = histogram.quantiles(0.5, 0.99, 1.0)
                found.append(RequestTimes(api, count, median / 1e3, p99 / 1e3, largest / 1e3))
        return sorted(found, key=lambda each: -each.count)

    def directories(self) -> Sequence[Directory]:
        """Return the data directories, with their disks as of the last look."""
        return self._directories

    def brokers(self) -> Sequence[BrokerSeen]:
        """Return the live brokers, by id."""
        listener, own_host = self._reached_by()
        seen = []
        for broker_id, view in sorted(self._cluster.brokers.items()):
            host, port = view.endpoints.get(listener) or next(
                iter(view.endpoints.values()), ("", 0)
            )
            is_controller = broker_id == self._cluster.controller_id
            host = host or own_host or "localhost"
            seen.append(BrokerSeen(broker_id, host, port, view.rack, is_controller))
        return seen

    async def replicas_of(self, broker_id: int) -> Replicas:
        """Return the replicas of a broker, as this broker's metadata has them."""
        held = led = looked_at = 0
        lagging: list[TopicPartition] = []
        leaderless: list[TopicPartition] = []
        for name in list(self._cluster.topic_names):
            topic = self._cluster.topic(name)
            if topic is None:
                continue
            for index, each in enumerate(topic.partitions):
                if broker_id not in each.replicas:
                    continue
                held += 1
                led += each.leader == broker_id
                if broker_id not in each.isr:
                    lagging.append(TopicPartition(name, index))
                if each.leader < 0:
                    leaderless.append(TopicPartition(name, index))
            looked_at += 1 + len(topic.partitions)
            if looked_at >= SLICE:
                looked_at = 0
                await asyncio.sleep(0)
        return Replicas(held, led, lagging, leaderless)

    def health(self) -> Health:
        """Return what was wrong at the last look, and who the controller is now."""
        last = self._health
        if last.controller_id == self._cluster.controller_id and last.silent == self._is_silent():
            return last
        return Health(
            last.offline_partitions,
            last.under_replicated,
            last.offline_count,
            last.under_replicated_count,
            last.under_min_isr_count,
            last.partitions,
            last.topics,
            self._cluster.controller_id,
            self._is_silent(),
        )

    async def diary(self, limit: int = 100, wanted: Concerns | None = None) -> Diary:
        """Return entries of the diary."""
        return Diary(()) if self._diary is None else await self._diary(limit, wanted)

    async def behind(self) -> Sequence[tuple[str, float]]:
        """Return the groups here that are far behind, and how many seconds."""
        return () if self._behind is None else await self._behind()

    def lag_seconds(self, group: str) -> Mapping[tuple[str, int], float]:
        """Return the lag in seconds of a group's partitions, as far as it is known."""
        return {} if self._lag_seconds is None else self._lag_seconds(group)

    def log_lines(
        self, *, level: int = 0, logger: str = "", text: str = "", limit: int = 100
    ) -> Sequence[LogLine]:
        """Return the last lines of this process's log, the newest first."""
        return self._lines.lines(level=level, logger=logger, text=text, limit=limit)

    def requests(self) -> RequestsSeen:
        """Return what was seen of requests, and what waits now."""
        if self._requests is None:
            return RequestsSeen((), (), (), (), 0)
        return self._requests.seen()

    def topic_clients(self, topic: str) -> Sequence[TopicClient]:
        """Return who has lately written to a topic at this broker, or read it."""
        return () if self._requests is None else self._requests.clients_of(topic)

    def topic_counts(self, topic: str) -> TopicCounts:
        """Return the traffic of a topic at this broker."""
        traffic = self._partitions.traffic.of_topic(topic)
        if traffic is None:
            return TopicCounts(0, 0, 0)
        return TopicCounts(traffic.bytes_in, traffic.bytes_out, traffic.messages_in)

    def log_states(self, topic: str) -> Sequence[LogState]:
        """Return the state of the logs that this broker has of a topic."""
        return log_states(self._partitions, topic)

    # looking

    def watch(self) -> None:
        """Begin to keep log lines and requests."""
        logging.getLogger().addHandler(self._lines)
        if self._requests is not None:
            self._requests.start()

    def unwatch(self) -> None:
        """Keep no more of them."""
        logging.getLogger().removeHandler(self._lines)
        if self._requests is not None:
            self._requests.stop()

    async def start(self) -> None:
        """Look a first time, and then every five seconds."""
        self.watch()
        await self.look()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SAMPLE_S, self._turn)
        self._tick = loop.call_later(TICK_S, self._ticked, loop.time() + TICK_S)

    async def stop(self) -> None:
        """Look no more."""
        self.unwatch()
        for handle in (self._timer, self._tick):
            if handle is not None:
                handle.cancel()
        self._timer = self._tick = None
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    def _turn(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SAMPLE_S, self._turn)
        if self._looking is None or self._looking.done():
            self._looking = spawn(self.look(), "a look at the broker for its console")

    def _ticked(self, due_s: float) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self._longest_s = max(self._longest_s, now_s - due_s)
        self._tick = loop.call_later(TICK_S, self._ticked, now_s + TICK_S)

    async def look(self) -> None:
        """Take a sample, and look for what is wrong."""
        traffic = self._partitions.traffic
        counts = _Counts(
            asyncio.get_running_loop().time(),
            time.thread_time(),
            traffic.total("messages_in"),
            traffic.total("bytes_in"),
            traffic.total("bytes_out"),
            {api: histogram.buckets() for api, histogram in self._times()},
        )
        if self._before is not None:
            self._samples.append(self._sample(self._before, counts))
        self._before, self._longest_s = counts, 0.0
        await self._look_at_partitions()
        if self._looks % SPACE_EVERY == 0:
            await self._look_at_disks()
        self._looks += 1

    def _sample(self, before: _Counts, now: _Counts) -> Sample:
        elapsed_s = max(now.loop_s - before.loop_s, 1e-3)
        fetches = next((api for api in CONSUMER_FETCHES if api in now.times), "")

        def p99_ms(api: str) -> float:
            return _quantile(before.times.get(api, []), now.times.get(api, []), 0.99) / 1e3

        return Sample(
            self._wall_ms() // 1000,
            (now.bytes_in - before.bytes_in) / elapsed_s,
            (now.bytes_out - before.bytes_out) / elapsed_s,
            max(now.records - before.records, 0) / elapsed_s,
            (now.requests - before.requests) / elapsed_s,
            p99_ms("Produce"),
            p99_ms(fetches),
            self._longest_s * 1e3,
            min(max((now.thread_s - before.thread_s) / elapsed_s, 0.0), 1.0),
        )

    def _times(self) -> Iterable[tuple[str, Histogram]]:
        for metric, instruments in self._registry.families():
            if metric.name == TIMES:
                for values, instrument in instruments:
                    if isinstance(instrument, Histogram):
                        yield values[0], instrument

    async def _look_at_partitions(self) -> None:
        offline: list[tuple[str, int]] = []
        under: list[tuple[str, int]] = []
        offline_count = under_count = partitions = topics = looked_at = 0
        for name in list(self._cluster.topic_names):
            topic = self._cluster.topic(name)
            if topic is None:
                continue
            topics += 1
            for index, each in enumerate(topic.partitions):
                if each.leader < 0:
                    offline_count += 1
                    if len(offline) < NAMED_MAX:
                        offline.append((name, index))
                if len(each.isr) < len(each.replicas):
                    under_count += 1
                    if len(under) < NAMED_MAX:
                        under.append((name, index))
            partitions += len(topic.partitions)
            looked_at += 1 + len(topic.partitions)
            if looked_at >= SLICE:
                looked_at = 0
                await asyncio.sleep(0)
        under_min = 0
        for at, partition in enumerate(list(self._partitions.values()), 1):
            if partition.is_leader and len(partition.isr) < partition.min_isr:
                under_min += 1
            if at % SLICE == 0:
                await asyncio.sleep(0)
        self._health = Health(
            offline,
            under,
            offline_count,
            under_count,
            under_min,
            partitions,
            topics,
            self._cluster.controller_id,
            self._is_silent(),
        )

    def _without_partitions(self) -> Health:
        return Health((), (), 0, 0, 0, 0, 0, self._cluster.controller_id, self._is_silent())

    async def _look_at_disks(self) -> None:
        """Ask the disks on a thread: one that fails may not answer."""
        found = []
        offline = set(self._logs.offline)
        for path in self._logs.paths:
            try:
                total, free = await offload(None, self._logs.space, path)
            except (OSError, StorageError) as failure:
                logger.debug("no size of the disk of %s: %s", path, failure)
                total = free = 0
            found.append(Directory(path, total, free, path not in offline))
        found += [
            Directory(path, 0, 0, False) for path in sorted(offline - {each.path for each in found})
        ]
        self._directories = found


class _Counts:
    """What is counted, at one moment."""

    __slots__ = ("bytes_in", "bytes_out", "loop_s", "records", "requests", "thread_s", "times")

    def __init__(
        self,
        loop_s: float,
        thread_s: float,
        records: int,
        bytes_in: int,
        bytes_out: int,
        times: dict[str, Buckets],
    ) -> None:
        self.loop_s = loop_s
        self.thread_s = thread_s
        self.records = records
        self.bytes_in = bytes_in
        self.bytes_out = bytes_out
        self.times = times
        self.requests = sum(
            count
            for api, buckets in times.items()
            if api not in ("FetchConsumer", "FetchFollower") or "Fetch" not in times
            for _, count in buckets
        )


def _quantile(before: Buckets, now: Buckets, fraction: float) -> float:
    """Return a quantile of what was recorded between two moments; 0 if nothing was."""
    known = dict(before)
    fresh = [(largest, count - known.get(largest, 0)) for largest, count in now]
    total = sum(count for _, count in fresh)
    if total <= 0:
        return 0.0
    reached = 0
    sums = []
    for _, count in fresh:
        reached += count
        sums.append(reached)
    return float(fresh[bisect_left(sums, max(1, ceil(fraction * total)))][0])

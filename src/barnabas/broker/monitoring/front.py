"""The metrics of a broker's front: what waits in it, who is connected, the loop, the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

from barnabas import __version__, kernels
from barnabas.broker.loop import IoThreads, LongSteps
from barnabas.broker.monitoring.loop_monitor import LoopMonitor
from barnabas.broker.monitoring.process import ProcessMetrics, build_labels
from barnabas.broker.monitoring.traffic_series import TrafficSeries
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.metrics.catalogue import process, waiting
from barnabas.metrics.catalogue.network import NETWORK_PROCESSOR, SOFTWARE
from barnabas.metrics.metric import Metric, label_text
from barnabas.metrics.registry import Registry
from barnabas.timing.purgatory import Purgatory


class FrontSeries:
    """Reads what the front has counted where it happened, and who is connected."""

    def __init__(self, partitions: HostedPartitions, network: SocketServer) -> None:
        self._partitions = partitions
        self._network = network

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        """Yield expirations, evictions, and connections by software."""
        expirations = self._partitions.expirations
        labels = waiting.EXPIRED_FETCHES.labels
        yield (
            waiting.EXPIRED_FETCHES,
            [
                (label_text(labels, ("consumer",)), expirations.consumer_fetches),
                (label_text(labels, ("follower",)), expirations.follower_fetches),
            ],
        )
        labels = waiting.EXPIRED_APPENDS.labels
        appends: list[tuple[str, float]] = [("", expirations.appends)]
        appends += [
            (label_text(labels, (topic, str(partition))), count)
            for (topic, partition), count in expirations.by_partition.items()
        ]
        yield waiting.EXPIRED_APPENDS, appends
        yield waiting.SESSION_EVICTIONS, [("", self._partitions.fetch_sessions.evictions)]
        yield (
            SOFTWARE,
            [
                (label_text(SOFTWARE.labels, (*software, NETWORK_PROCESSOR)), count)
                for software, count in self._network.software()
            ],
        )


def show_front(
    registry: Registry,
    partitions: HostedPartitions,
    network: SocketServer,
    executor: Executor | None,
) -> None:
    """Register the metrics of a broker's front."""
    sessions = partitions.fetch_sessions
    registry.gauge(waiting.FETCH_SESSIONS, lambda: len(sessions))
    registry.gauge(waiting.SESSION_PARTITIONS, lambda: sessions.partition_count)
    for name, purgatory in (
        ("Fetch", partitions.fetch_purgatory),
        ("Produce", partitions.produce_purgatory),
        ("DeleteRecords", partitions.deletion_purgatory),
    ):
        registry.gauge(waiting.PURGATORY_SIZE, partial(_watched, purgatory), name)
        registry.gauge(waiting.DELAYED_OPERATIONS, purgatory.__len__, name)
    if isinstance(executor, IoThreads):
        registry.gauge(waiting.EXECUTOR_QUEUE, lambda: executor.queued)
    registry.gauge(process.BUILD_INFO, lambda: 1, *build_labels(__version__, kernels.NAME))
    registry.add_collector(TrafficSeries(partitions))
    registry.add_collector(FrontSeries(partitions, network))
    registry.add_collector(ProcessMetrics())


def _watched(purgatory: Purgatory) -> int:
    return purgatory.watched


def loop_monitor(
    registry: Registry,
    clock: Callable[[], float],
    thread_clock: Callable[[], float] | None,
    blocked_s: Callable[[], float],
    long_steps: LongSteps,
    note_stall: Callable[[str, dict[str, Any]], None],
) -> LoopMonitor | None:
    """Return what measures the loop; None where time is virtual."""
    if thread_clock is None:
        return None
    return LoopMonitor(registry, clock, thread_clock, blocked_s, long_steps, note_stall)

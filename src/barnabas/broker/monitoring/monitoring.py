"""Puts together what is read at a scrape, and what has to be sampled between scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.coordinators.collaborators import Ask
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.loop import spawn
from barnabas.broker.monitoring.broker_series import BrokerSeries
from barnabas.broker.monitoring.consumer_lag import ConsumerLag
from barnabas.broker.monitoring.controller_gauges import ControllerGauges
from barnabas.broker.monitoring.group_gauges import GroupGauges
from barnabas.broker.monitoring.lag_series import LagSeries
from barnabas.broker.monitoring.log_series import LogSeries
from barnabas.broker.monitoring.loop_monitor import LoopMonitor
from barnabas.broker.monitoring.partition_series import PartitionSeries
from barnabas.broker.monitoring.record_times import RecordTimes
from barnabas.broker.monitoring.remote_ends import RemoteEnds
from barnabas.broker.monitoring.replica_gauges import ReplicaGauges
from barnabas.broker.monitoring.transaction_gauges import TransactionGauges
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.broker.storage.logs import Logs
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metrics.registry import Collector, Registry

TICK_S = 1.0
REFRESH_TICKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The parts of a broker that are read."""

    broker_id: int
    options: Callable[[], BrokerOptions]
    now_ms: Callable[[], int]
    clock_ms: Callable[[], int]
    cluster: ClusterView
    partitions: HostedPartitions
    logs: Logs
    fetchers: Fetchers
    controller: ControllerHost
    control: ControllerCommands
    groups: GroupHost
    transactions: TransactionHost
    ask: Ask
    executor: Executor | None
    loop: LoopMonitor | None
    """What measures the loop; None where time is virtual."""


class Monitoring:
    """Registers gauges and collectors, and ticks once a second."""

    def __init__(self, registry: Registry, watched: Watched) -> None:
        parts = watched
        replicas = ReplicaGauges(
            parts.broker_id,
            parts.partitions,
            parts.cluster,
            parts.logs,
            parts.fetchers,
            parts.options,
            parts.now_ms,
        )
        series = PartitionSeries(
            parts.broker_id,
            parts.partitions,
            parts.cluster,
            parts.controller,
            parts.fetchers,
        )
        self._groups = GroupGauges(parts.groups, parts.clock_ms)
        self.consumer_lag = ConsumerLag(
            parts.groups,
            parts.partitions,
            RemoteEnds(parts.broker_id, parts.cluster, parts.ask, parts.clock_ms),
            RecordTimes(parts.executor),
            parts.now_ms,
            parts.clock_ms,
        )
        collectors: list[Collector] = [
            replicas,
            LogSeries(parts.logs),
            ControllerGauges(parts.controller, parts.control),
            BrokerSeries(parts.controller),
            series,
            self._groups,
            LagSeries(self.consumer_lag, self.refresh),
            TransactionGauges(parts.transactions, parts.now_ms, parts.clock_ms),
        ]
        for collector in collectors:
            registry.add_collector(collector)
        self._loop = parts.loop
        self._ticks = 0
        self._handle: asyncio.TimerHandle | None = None
        self._refresh: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """Sample from now on."""
        if self._loop is not None:
            self._loop.start()
        self._handle = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    async def stop(self) -> None:
        """Sample no more."""
        self._stopped = True
        if self._loop is not None:
            self._loop.stop()
        if self._handle is not None:
            self._handle.cancel()
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)

    def refresh(self) -> None:
        """Look for partitions that groups read, and ask their leaders, unless that is going on."""
        if not self._stopped and (self._refresh is None or self._refresh.done()):
            self._refresh = spawn(self.consumer_lag.refresh(), "the search for consumers' lag")

    def _tick(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._ticks += 1
        if self._ticks % REFRESH_TICKS == 1:
            self.refresh()
        self.consumer_lag.tick()
        self._groups.tick()

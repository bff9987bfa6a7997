"""The lifecycle of a broker: the order in which its parts start and stop.

It joins its cluster, binds its listeners, loads its logs, and only then registers: from that
moment the controller may send requests. Clients are served once it has.

It ends in one of three ways. `stop` finishes requests in progress and leaves nothing to recover.
`kill` ends as a crash of the machine would. A start that fails is undone in the same way, however
far it got: no task, no connection and no session is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from barnabas.broker.cluster.configs import CLIENT_METRICS_ENTITY
from barnabas.broker.cluster.controlled_shutdown import hand_over
from barnabas.broker.cluster.registration import Registration, embedded_tree, zookeeper_tree
from barnabas.broker.diary.topic_writer import diary_topic
from barnabas.broker.loop import IoThreads
from barnabas.broker.monitoring.broker_state import BrokerState
from barnabas.broker.monitoring.coordination_metrics import CoordinationMetrics
from barnabas.broker.monitoring.health import Health
from barnabas.broker.parts import Parts, build_parts
from barnabas.broker.storage.adoption import adopt
from barnabas.broker.storage.logs import Logs
from barnabas.coordination.contract import Coordination, SessionState
from barnabas.log.files import DiskFiles, Files
from barnabas.metadata.topic_names import DIARY_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.monitoring.metrics_listener import MetricsListener
    from barnabas.config.broker import BrokerOptions

CLIENT_ENTITIES = ("users", "clients", "ips", CLIENT_METRICS_ENTITY)

DRAIN_S_MAX = 30.0
"""How long a broker that stops waits for requests in progress."""


class Lifecycle:
    """Starts and stops one broker."""

    def __init__(
        self,
        broker: Broker,
        coordination: Coordination | None,
        files: Files | None,
        executor: Executor | None,
        random: Random,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._broker = broker
        self._tree = coordination
        self._files = files or DiskFiles()
        self._own_executor = executor is None
        self._executor = executor
        self._random = random
        self._random_bytes = random_bytes
        self._parts: Parts | None = None
        self._running = False
        self._stopping: asyncio.Future[None] | None = None
        self.health = Health()
        self._metrics_listener: MetricsListener | None = None

    # starting

    async def start(self) -> None:
        """Build all parts and serve; raise the reason if that fails."""
        options = self._broker.static_options
        self._broker.state = BrokerState.STARTING
        self._stopping = None
        if self._own_executor:
            self._executor = IoThreads(options.num_io_threads)
        logs = Logs(
            self._files,
            options.log_directories,
            self._executor,
            self._random.random,
            self._random_bytes,
        )
        try:
            self.health.entered("starting: joining the cluster")
            if options.metrics_address is not None:
                await self._build_metrics_listener().configure(options)
            parts = self._build_parts(logs, await self._join_cluster(logs))
            self.health.entered("starting: loading the logs")
            await self._load(parts)
            self.health.entered("starting: waiting for the controller")
            await self._serve(parts)
        except (Exception, asyncio.CancelledError):  # not what ends the loop itself
            if self._parts is not None:
                await self._halt(self._parts)
            await self._abandon(logs)
            self._broker.state = BrokerState.NOT_RUNNING
            raise
        self._running = True
        self._broker.state = BrokerState.RUNNING
        self.health.serving(lambda: _hindrance(parts))

    def _build_metrics_listener(self) -> MetricsListener:
        # Imported here: a broker that does not serve its metrics need not have it in memory.
        from barnabas.broker.monitoring.metrics_listener import MetricsListener

        broker = self._broker
        listener = MetricsListener(broker.metrics, self.health, self._executor, broker.clock)
        if self._parts is not None:
            listener.exporter = self._parts.cluster_exporter
        self._metrics_listener = listener
        return listener

    def configure_metrics(self, options: BrokerOptions) -> None:
        """Serve metrics where changed options say, or no longer."""
        listener = self._metrics_listener
        if listener is None and options.metrics_address is not None and self._running:
            listener = self._build_metrics_listener()
        if listener is not None:
            listener.reconfigure(options)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Return where metrics are served; None if they are not."""
        return None if self._metrics_listener is None else self._metrics_listener.address

    async def _join_cluster(self, logs: Logs) -> Registration:
        broker = self._broker
        options = broker.static_options
        if self._tree is None and options.zookeeper_connect is not None:
            self._tree = zookeeper_tree(options)
        elif self._tree is None:
            self._tree = embedded_tree(self._first_directory, logs.offline, self._executor)
        self._coordination = CoordinationMetrics(
            broker.metrics, self._tree, shared=not broker.alone
        )
        registration = Registration(self._tree, options, self._random_bytes)
        await registration.join(logs.identity())
        broker.cluster.cluster_id = registration.cluster_id
        logs.write_identity(registration.broker_id, registration.cluster_id)
        return registration

    @property
    def _first_directory(self) -> str:
        return self._broker.static_options.log_directories[0].rstrip("/")

    def _build_parts(self, logs: Logs, registration: Registration) -> Parts:
        self._parts = build_parts(
            self._broker,
            logs,
            registration,
            executor=self._executor,
            compaction_executor=None if self._own_executor else self._executor,
            vital_path=self._first_directory if self._broker.alone else None,
            random=self._random,
            random_bytes=self._random_bytes,
            enter_cluster=self._enter_cluster,
            on_session_refused=self._coordination.refused,
        )
        self._broker.take_parts(self._parts)
        if self._metrics_listener is not None:
            self._metrics_listener.exporter = self._parts.cluster_exporter
        return self._parts

    async def _load(self, parts: Parts) -> None:
        broker, configs = self._broker, self._broker.configs
        await parts.initial_users.start()  # before users and ACLs are read
        await parts.config_notices.skip()  # what changes while logs are loaded is read later
        for name, values in (await parts.config_store.get_all("brokers")).items():
            configs.set_dynamic(name, values)
        for entity_type, entities in await self._client_configs(parts):
            for name, values in entities.items():
                broker.configs_changed(entity_type, name, values)
        self.use_threads(broker.options.num_io_threads)
        await parts.sasl.start(alone=broker.alone)
        topics = await parts.config_store.get_all("topics")
        # A port in use is noticed before the logs are opened, which then need no recovery.
        await parts.network.bind(broker.options)
        broker.state = BrokerState.RECOVERY
        # A topic may have thousands of partitions.
        options_of = cache(lambda topic: configs.topic_options(topics.get(topic, {})))
        await parts.logs.load(
            options_of, broker.now_ms(), broker.options.num_recovery_threads_per_data_dir
        )

    async def _client_configs(self, parts: Parts) -> list[tuple[str, dict[str, dict[str, str]]]]:
        """Read the configs of users, client ids, addresses, and of metrics that clients push."""
        store = parts.config_store
        found = [(each, await store.get_all(each)) for each in CLIENT_ENTITIES]
        return [*found, *(await store.get_all_clients()).items()]

    async def _serve(self, parts: Parts) -> None:
        broker, cluster = self._broker, self._broker.cluster
        await self._enter_cluster()
        if parts.controller.term is None:
            await parts.network.accept()  # so that the controller can send metadata
        await parts.control.until_informed(3 * broker.options.zookeeper_session_timeout_ms)
        parts.groups.open()
        parts.transactions.open()
        if broker.alone and not any(True for _ in cluster.topics):
            await adopt(
                parts.logs,
                {host.topic: host.topic_configs for host in (parts.groups, parts.transactions)}
                | {DIARY_TOPIC: diary_topic(broker.options).configs},
                reserve_producer_ids=parts.producer_id_blocks.reserve,
                create=parts.topics.adopt,
            )
        parts.logs.settle_forks(lambda topic_id: cluster.topic_by_id(topic_id) is not None)
        for _ in parts.logs.offline:
            await parts.log_failures.notify()
        if parts.diary is not None:
            broker.journal.keep_with(parts.diary.take)
        parts.housekeeping.start()
        parts.monitoring.start()
        parts.compaction.start()
        parts.session_renewal.start()
        if parts.otlp_export is not None:
            parts.otlp_export.start()
        await parts.network.accept()

    async def _enter_cluster(self) -> None:
        """Register, at the start or after a lost session: each time with a new epoch."""
        broker, parts = self._broker, self._parts
        assert parts is not None
        await parts.controller.resign()
        broker.cluster.brokers[broker.broker_id] = await parts.registration.register(
            *parts.network.reached_at, broker.now_ms()
        )
        parts.silence.registered()
        await parts.config_notices.start()
        if parts.acls is not None:
            await parts.acls.start()
        await parts.shared_tokens.start()
        await parts.controller.start()
        parts.address_changes.look()  # listeners may have changed without a session

    def use_threads(self, count: int) -> None:
        """Resize the pool of I/O threads, unless it belongs to the caller."""
        if isinstance(self._executor, IoThreads):
            self._executor.resize(count)

    # stopping

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called since the start."""
        return self._stopping is not None

    async def stop(self) -> None:
        """Stop cleanly: finish requests in progress, flush everything, mark the logs as closed.

        A second call while that is in progress waits for its end.
        """
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
            return
        # In the caller's task: what gives up while it renews the session must not cancel itself.
        self._stopping = asyncio.get_running_loop().create_future()
        try:
            await self._stop()
        finally:
            self._stopping.set_result(None)

    async def _stop(self) -> None:
        parts = self._parts
        if not self._running or parts is None:
            return
        broker, tree = self._broker, parts.registration.tree
        if parts.diary is not None:
            await parts.diary.flush()
        broker.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        why = f": {broker.lost_reason}" if broker.lost_reason else ""
        self.health.entered(f"stopping{why}")
        await hand_over(
            broker.options,
            parts.registration,
            broker.cluster,
            parts.controller,
            parts.to_controller,
        )
        self._running = False
        await self._stop_diary(parts)
        broker.state = BrokerState.SHUTTING_DOWN
        parts.session_renewal.stop()
        if parts.acls is not None:
            parts.acls.stop()
        await parts.address_changes.stop()
        await parts.isr_proposals.stop()
        await parts.fetchers.stop()
        await parts.controller.retire()
        parts.control.learned.end()  # requests must not wait for decisions that will not be made
        if tree.state is not SessionState.CONNECTED:
            # No notice can be sent, and requests that wait for the tree would never complete.
            await tree.close()
        parts.network.stop_accepting()
        await parts.monitoring.stop()
        if parts.otlp_export is not None:
            await parts.otlp_export.stop()
        parts.housekeeping.stop()
        await parts.network.drain(DRAIN_S_MAX)
        await self._answer_producers(parts)
        await parts.network.close()
        broker.audit.flush()
        parts.silence.stop()  # not before: it answers until here
        parts.groups.stop()
        parts.transactions.stop()
        await parts.transactions.markers.stop()
        parts.timer.stop()
        await parts.relocations.stop()
        await parts.compaction.stop()
        await parts.partitions.flusher.drain()
        await parts.housekeeping.drain()
        await parts.log_failures.drain()
        parts.peers.close()
        parts.cluster_peers.close()
        parts.shared_tokens.stop()
        await parts.sasl.stop()
        await parts.logs.close(broker.now_ms(), parts.registration.epoch)
        await tree.close()
        await self._close_metrics_listener()  # last: until here it says that the broker stops
        self._shut_executor()
        broker.state = BrokerState.NOT_RUNNING

    async def _stop_diary(self, parts: Parts) -> None:
        if parts.diary is not None:
            await parts.diary.stop()
        parts.diary_peers.close()

    async def _answer_producers(self, parts: Parts) -> None:
        """Flush what producers wait for, and answer them; followers can no longer fetch."""
        for partition in parts.partitions.values():
            parts.partitions.flush_if_owed(partition)  # an earlier flush may have failed
        await parts.partitions.flusher.drain()
        parts.partitions.produce_purgatory.give_up()
        await asyncio.sleep(0)  # the loop writes at the end of its turn

    async def kill(self) -> None:
        """Stop as a crash of the machine would: what was not flushed is lost, nothing is marked."""
        parts = self._parts
        if not self._running or parts is None:
            return
        self._running = False
        self._broker.state = BrokerState.NOT_RUNNING
        await self._halt(parts)
        parts.logs.discard_unflushed(self._broker.now_ms())
        await self._abandon(parts.logs)

    async def _halt(self, parts: Parts) -> None:
        """Cancel every task."""
        await self._stop_diary(parts)
        parts.silence.stop()
        parts.session_renewal.stop()
        if parts.acls is not None:
            parts.acls.stop()
        await parts.address_changes.stop()
        await parts.isr_proposals.stop()
        await parts.fetchers.stop()
        await parts.controller.stop()
        parts.peers.close()
        parts.cluster_peers.close()
        parts.shared_tokens.stop()
        await parts.sasl.stop()
        await parts.monitoring.stop()
        if parts.otlp_export is not None:
            await parts.otlp_export.abandon()
        parts.housekeeping.stop()
        parts.groups.stop()
        parts.transactions.stop()
        await parts.transactions.markers.stop()
        parts.timer.stop()
        parts.log_failures.stop()
        await parts.relocations.stop()
        await parts.compaction.stop()
        await parts.housekeeping.abandon()
        await parts.partitions.flusher.abandon()

    async def _abandon(self, logs: Logs) -> None:
        """Release the network, the files, the tree and the threads."""
        await self._close_metrics_listener()
        if self._parts is not None:
            await self._parts.network.close()
        logs.abandon()
        if self._tree is not None:
            await self._tree.close()
        self._shut_executor()

    async def _close_metrics_listener(self) -> None:
        if self._metrics_listener is not None:
            await self._metrics_listener.close()

    def _shut_executor(self) -> None:
        if self._own_executor and self._executor is not None:
            self._executor.shutdown(wait=False)


def _hindrance(parts: Parts) -> str | None:
    """Return why a broker that runs cannot serve clients at the moment; None if it can."""
    state = parts.registration.tree.state
    if state is not SessionState.CONNECTED:
        return f"the session with the coordination service is {state.value}"
    if parts.silence.is_silent:
        return "its session may have ended: another broker may lead its partitions"
    return None

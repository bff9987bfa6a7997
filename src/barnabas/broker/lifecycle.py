"""The life of a broker: its parts in the order in which they are made, start and end.

It joins its cluster, binds its listeners, loads its logs, and only then enters the cluster: from
that moment the controller may speak to it. Clients are served once it has.

There are three ends. `stop` finishes what is under way and leaves nothing to recover. `kill` ends
as a crash of the machine would. A start that fails is undone in the same way, whatever it had come
to: no loop, no connection and no session is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from barnabas.broker.cluster.cluster_session import ClusterSession
from barnabas.broker.cluster.config_notices import ConfigNotices
from barnabas.broker.cluster.configs import Configs
from barnabas.broker.cluster.controlled_shutdown import hand_over
from barnabas.broker.cluster.controller_commands import Control
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.membership import Membership, embedded_tree, zookeeper_tree
from barnabas.broker.cluster.peers import Peers
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.cluster.topics import Topics
from barnabas.broker.cluster.tree_offsets import TreeOffsets
from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.coordinators.markers import MarkerWriter
from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.broker.coordinators.remote_markers import MarkerSender
from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.following.fetchers import Fetchers
from barnabas.broker.following.isr_keeper import IsrKeeper
from barnabas.broker.following.replicas import Replicas
from barnabas.broker.following.replication_quotas import ReplicationQuotas
from barnabas.broker.housekeeping import Housekeeping
from barnabas.broker.io_threads import IoThreads
from barnabas.broker.loop import WheelTimer
from barnabas.broker.network.address_changes import AddressChanges
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.fetch_sessions import FetchSessions
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.storage.adoption import adopt
from barnabas.broker.storage.compaction_workers import CompactionWorkers
from barnabas.broker.storage.forks import Forks
from barnabas.broker.storage.log_failures import LogFailures
from barnabas.broker.storage.logs import Logs
from barnabas.broker.storage.relocations import Relocations
from barnabas.broker.storage.retention import Retention
from barnabas.config.sources import BrokerSources
from barnabas.coordination.contract import Coordination, SessionState
from barnabas.log.files import DiskFiles, Files
from barnabas.metadata.config_store import ConfigStore
from barnabas.metadata.producer_id_blocks import ProducerIdBlocks
from barnabas.metadata.topic_store import TopicStore

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

DRAIN_S_MAX = 30.0
"""How long a broker that stops waits for requests that are under way."""


class Lifecycle:
    """Puts one broker together, and takes it apart."""

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
        self._files = files
        self._own_executor = executor is None
        self._executor = executor
        self._random = random
        self._random_bytes = random_bytes
        self._network: SocketServer | None = None
        self._has_parts = False
        self._running = False

    # the beginning

    async def start(self) -> None:
        """Make all parts and serve; raises with the reason if that is not possible."""
        broker = self._broker
        options = broker.static_options
        if self._own_executor:
            self._executor = IoThreads(options.num_io_threads)
        self._files = self._files or DiskFiles()
        broker.lost = asyncio.Event()
        broker.lost_reason = ""
        broker.timer = WheelTimer(asyncio.get_running_loop())
        broker.logs = Logs(
            self._files,
            options.log_directories,
            self._executor,
            self._random.random,
            self._random_bytes,
        )
        try:
            await self._join_cluster()
            self._make_parts()
            await self._load()
            await self._serve()
        except (Exception, asyncio.CancelledError):  # not what ends the loop itself
            if self._has_parts:
                await self._halt()
            await self._abandon()
            raise
        self._running = True

    async def _join_cluster(self) -> None:
        broker = self._broker
        options = broker.static_options
        if self._tree is None and options.zookeeper_connect is not None:
            self._tree = zookeeper_tree(options)
        elif self._tree is None:
            self._tree = embedded_tree(broker.logs, self._executor, self._first_directory)
        broker.tree = self._tree
        broker.membership = Membership(broker.tree, options, self._random_bytes)
        await broker.membership.join(broker.logs.identity())
        broker.cluster.cluster_id = broker.membership.cluster_id
        broker.broker_id = broker.membership.broker_id
        broker.logs.write_identity(broker.broker_id, broker.cluster.cluster_id)

    @property
    def _first_directory(self) -> str:
        return self._broker.static_options.log_directories[0].rstrip("/")

    def _make_parts(self) -> None:
        broker, tree = self._broker, self._broker.tree
        options = broker.static_options
        broker.partitions = HostedPartitions(
            broker.timer,
            self._executor,
            broker.now_ms,
            FetchSessions(
                options.max_incremental_fetch_session_cache_slots,
                lambda: self._random.randrange(1, 2**31),
            ),
            check_silence=lambda: broker.silence.check(),
            on_follower_flushed=lambda partition: broker.fetchers.flushed(partition),
            on_storage_failure=lambda key, failure: broker.log_failures.of_partition(key, failure),
        )
        broker.log_failures = LogFailures(broker, self._first_directory if broker.alone else None)
        broker.relocations = Relocations(broker, self._executor)
        broker.retention = Retention(broker, self._executor)
        broker.cleaning = CompactionWorkers(broker, None if self._own_executor else self._executor)
        broker.forks = Forks(broker, self._executor, self._random_bytes)
        broker.logs.on_failure = broker.log_failures.of_directory
        broker.configs = Configs(
            BrokerSources(options.given),
            broker.broker_id,
            lambda topic: broker.cluster.topic(topic) is not None,
        )
        broker.config_store = ConfigStore(tree)
        broker.controller = ControllerHost(broker, tree, self._random_bytes)
        broker.peers = Peers(broker)
        broker.control = Control(broker)
        broker.replicas = Replicas(broker)
        broker.fetchers = Fetchers(broker)
        broker.isr_keeper = IsrKeeper(broker)
        broker.replication_quotas = ReplicationQuotas(lambda: broker.options)
        broker.config_notices = ConfigNotices(broker, tree)
        broker.producer_id_blocks = ProducerIdBlocks(tree, broker.broker_id)
        self._make_coordinators()
        broker.tree_offsets = TreeOffsets(tree)
        broker.producer_ids = ProducerIds(broker.producer_id_blocks.take)
        broker.topics = Topics(
            broker,
            TopicStore(tree, broker.cluster, self._random_bytes),
            options.num_partitions,
            options.default_replication_factor,
        )
        broker.housekeeping = Housekeeping(broker)
        broker.silence = Silence(broker)
        broker.timer.before_running = broker.silence.check
        broker.cluster_session = ClusterSession(
            tree, broker.controller.resign, self._enter_cluster, broker.give_up
        )
        self._has_parts = True

    def _make_coordinators(self) -> None:
        broker = self._broker
        collaborators = Collaborators(
            broker_id=broker.broker_id,
            options=lambda: broker.options,
            now_ms=broker.now_ms,
            timer=broker.timer,
            cluster=broker.cluster,
            partitions=broker.partitions,
            absent=broker.absent,
            shown_leader=broker.shown_leader,
            create_topic=lambda topic: broker.topics.create_internal(topic),
            topic_is_gone=lambda name: broker.topics.is_gone(name),
            ask=broker.peers.ask,
            allows=broker.allows,
        )
        broker.groups = GroupHost(collaborators, self._random_bytes)
        broker.marker_writer = MarkerWriter(collaborators, broker.groups.transaction_ended)
        markers = MarkerSender(collaborators, broker.marker_writer)
        broker.transactions = TransactionHost(collaborators, markers)

    async def _load(self) -> None:
        broker = self._broker
        await broker.config_notices.skip()  # what changes while logs are loaded is heard of later
        for name, values in (await broker.config_store.get_all("brokers")).items():
            broker.configs.set_dynamic(name, values)
        self.use_threads(broker.options.num_io_threads)
        topics = await broker.config_store.get_all("topics")
        # A taken port is known before the logs are opened, which then need no recovery.
        self._network = broker.network = SocketServer(broker)
        broker.address_changes = AddressChanges(broker)
        await broker.network.bind()
        # A topic may have thousands of partitions.
        options_of = cache(lambda topic: broker.configs.topic_options(topics.get(topic, {})))
        await broker.logs.load(
            options_of, broker.now_ms(), broker.options.num_recovery_threads_per_data_dir
        )

    async def _serve(self) -> None:
        broker = self._broker
        await self._enter_cluster()
        if broker.controller.term is None:
            await broker.network.accept()  # so that the controller can tell
        await broker.control.until_informed(3 * broker.options.zookeeper_session_timeout_ms)
        broker.groups.open()
        broker.transactions.open()
        if broker.alone:
            await adopt(broker)
        broker.logs.settle_forks(lambda topic_id: broker.cluster.topic_by_id(topic_id) is not None)
        for _ in broker.logs.offline:
            await broker.log_failures.notify()
        broker.housekeeping.start()
        broker.cleaning.start()
        broker.cluster_session.start()
        await broker.network.accept()

    async def _enter_cluster(self) -> None:
        """Enter the cluster, at the start or after a lost session: each time with a new epoch."""
        broker = self._broker
        await broker.controller.resign()
        broker.cluster.brokers[broker.broker_id] = await broker.membership.register(
            *broker.network.reached_at, broker.now_ms()
        )
        broker.silence.registered()
        await broker.config_notices.start()
        await broker.controller.start()
        broker.address_changes.look()  # listeners may have changed without a session

    def use_threads(self, count: int) -> None:
        """Resize the pool of I/O threads, unless it belongs to the caller."""
        if isinstance(self._executor, IoThreads):
            self._executor.resize(count)

    # the ends

    async def stop(self) -> None:
        """End cleanly: finish what is under way, flush everything, leave the marker."""
        if not self._running:
            return
        broker = self._broker
        await hand_over(broker)
        self._running = False
        broker.cluster_session.stop()
        await broker.address_changes.stop()
        await broker.isr_keeper.stop()
        await broker.fetchers.stop()
        await broker.controller.retire()
        broker.control.learned.end()  # nobody here decides any more what requests may wait for
        if broker.tree.state is not SessionState.CONNECTED:
            # Nobody can be told, and requests that wait for the tree would be waited for in vain.
            await broker.tree.close()
        broker.network.stop_accepting()
        broker.housekeeping.stop()
        await broker.network.drain(DRAIN_S_MAX)
        await self._answer_producers()
        await broker.network.close()
        broker.silence.stop()  # not before: it answers until here
        broker.groups.stop()
        broker.transactions.stop()
        await broker.transactions.markers.stop()
        broker.timer.stop()
        await broker.relocations.stop()
        await broker.cleaning.stop()
        await broker.partitions.flusher.drain()
        await broker.housekeeping.drain()
        await broker.log_failures.drain()
        broker.peers.close()
        await broker.logs.close(broker.now_ms(), broker.broker_epoch)
        await broker.tree.close()
        self._shut_executor()

    async def _answer_producers(self) -> None:
        """Flush what producers wait for, and tell them; the others that nobody fetches any more."""
        broker = self._broker
        for partition in broker.partitions.values():
            # Also where the disk refused before, and may not now.
            broker.partitions.flush_if_owed(partition)
        await broker.partitions.flusher.drain()
        broker.partitions.produce_purgatory.give_up()
        await asyncio.sleep(0)  # the loop writes at the end of its turn

    async def kill(self) -> None:
        """End as a crash of the machine would: what was not flushed is gone, nothing is marked."""
        if not self._running:
            return
        self._running = False
        await self._halt()
        self._broker.logs.discard_unflushed(self._broker.now_ms())
        await self._abandon()

    async def _halt(self) -> None:
        """End every loop where it is."""
        broker = self._broker
        broker.silence.stop()
        broker.cluster_session.stop()
        if self._network is not None:
            await broker.address_changes.stop()
        await broker.isr_keeper.stop()
        await broker.fetchers.stop()
        await broker.controller.stop()
        broker.peers.close()
        broker.housekeeping.stop()
        broker.groups.stop()
        broker.transactions.stop()
        await broker.transactions.markers.stop()
        broker.timer.stop()
        broker.log_failures.stop()
        await broker.relocations.stop()
        await broker.cleaning.stop()
        await broker.housekeeping.abandon()
        await broker.partitions.flusher.abandon()

    async def _abandon(self) -> None:
        """Let go of the network, the files, the tree and the threads."""
        if self._network is not None:
            await self._network.close()
        self._broker.logs.abandon()
        if self._tree is not None:
            await self._tree.close()
        self._shut_executor()

    def _shut_executor(self) -> None:
        if self._own_executor and self._executor is not None:
            self._executor.shutdown(wait=False)

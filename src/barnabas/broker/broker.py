"""One broker: its parts, put together, started and stopped.

What comes from outside is given: options, coordination, files, clock, randomness. The same broker
runs in production on uvloop, in a test beside others, and in a simulation on a loop with a
virtual clock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache
from random import Random

from barnabas.broker.adoption import adopt
from barnabas.broker.alarm import Alarm
from barnabas.broker.cleaning import Cleaning
from barnabas.broker.cluster_session import ClusterSession
from barnabas.broker.config_notices import ConfigNotices
from barnabas.broker.configs import Configs
from barnabas.broker.control import Control
from barnabas.broker.controller_host import ControllerHost
from barnabas.broker.controller_requests import answer_here
from barnabas.broker.departure import hand_over
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.fetchers import Fetchers
from barnabas.broker.flusher import Flusher
from barnabas.broker.forks import Forks
from barnabas.broker.group_host import GroupHost
from barnabas.broker.handlers import served_apis
from barnabas.broker.handlers.delete_records import LIVE_BROKERS
from barnabas.broker.housekeeping import Housekeeping
from barnabas.broker.isr_keeper import IsrKeeper
from barnabas.broker.log_failures import LogFailures
from barnabas.broker.logs import Logs
from barnabas.broker.membership import Membership, embedded_tree, zookeeper_tree
from barnabas.broker.network import Network
from barnabas.broker.peers import Peers
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.relocations import Relocations
from barnabas.broker.replicas import Replicas
from barnabas.broker.replication_quotas import ReplicationQuotas
from barnabas.broker.retention import Retention
from barnabas.broker.session import Session
from barnabas.broker.topics import Topics
from barnabas.broker.transaction_host import TransactionHost
from barnabas.broker.tree_offsets import TreeOffsets
from barnabas.broker.tree_refusals import refused_as
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Endpoint
from barnabas.config.sources import BrokerSources
from barnabas.controller.cluster import BrokerView, ClusterView
from barnabas.controller.config_store import ConfigStore
from barnabas.controller.producer_id_blocks import ProducerIdBlocks
from barnabas.controller.topic_store import TopicStore
from barnabas.coordination.contract import Coordination, SessionState
from barnabas.log.files import DiskFiles, Files
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import AllowAll, Authorizer, Operation, ResourceType
from barnabas.timing.purgatory import Purgatory
from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.broker")

UNCLEAN_ELECTIONS = "unclean.leader.election.enable"
DRAIN_S_MAX = 30.0
"""How long a broker that stops waits for requests that are under way."""


class Broker:
    """A broker of a cluster; `start` makes it serve, `stop` ends it cleanly, `kill` does not."""

    def __init__(
        self,
        options: BrokerOptions,
        *,
        coordination: Coordination | None = None,
        files: Files | None = None,
        executor: Executor | None = None,
        wall_clock: Callable[[], float] = time.time,
        random: Random | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.static_options = options
        self.authorizer: Authorizer = AllowAll()
        self.cluster = ClusterView()
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.metrics = Registry()
        self._alone = coordination is None and options.zookeeper_connect is None
        self.served = served_apis(alone=self._alone)
        self._coordination = coordination
        self._files = files
        self._own_executor = executor is None
        self._executor = executor
        self._wall_clock = wall_clock
        self._random = random or Random()
        self._random_bytes = random_bytes
        self._network: Network | None = None
        self._running = False

    # what handlers use

    @property
    def options(self) -> BrokerOptions:
        """Return the options as they act now."""
        return self.configs.options

    def now_ms(self) -> int:
        """Return the wall clock's time, which records and logs carry."""
        return int(self._wall_clock() * 1000)

    def allows(
        self, session: Session, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        """Ask the authorizer."""
        return self.authorizer.allows(
            session.principal, session.client_host, operation, resource, name
        )

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name behind a topic id."""
        topic = self.cluster.topic_by_id(topic_id)
        return topic.name if topic is not None else self.replicas.topic_name(topic_id)

    def absent(self, topic: str, partition: int) -> RequestError:
        """Say why a partition is not hosted here."""
        view = self.cluster.topic(topic)
        if view is not None and 0 <= partition < len(view.partitions):
            if self.broker_id in view.partitions[partition].replicas:
                return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, "its log could not be opened")
            return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"no partition {partition} of topic {topic!r} here",
        )

    def offline_replicas(self, topic: str, partition: int, replicas: Sequence[int]) -> list[int]:
        """Return the replicas that no live broker serves, or whose disk failed here."""
        hosted = (topic, partition) in self.partitions
        view = self.cluster.topic(topic)
        known = view.partitions[partition].offline if view is not None else ()
        return [
            replica
            for replica in replicas
            if replica not in self.cluster.brokers
            or (not hosted if replica == self.broker_id else replica in known)
        ]

    def is_in_sync(self, key: TopicPartition) -> bool:
        """Tell whether this broker's replica is in sync, as far as the controller has told."""
        view = self.cluster.topic(key.topic)
        if view is None or key.partition >= len(view.partitions):
            return False
        return self.broker_id in view.partitions[key.partition].isr

    def endpoints_for(self, session: Session) -> Iterator[tuple[int, str, int, str | None]]:
        """Yield id, host, port and rack of each broker, as the session's listener reaches them."""
        for view in self.cluster.brokers.values():
            endpoint = view.endpoints.get(session.listener)
            if endpoint is not None:
                host, port = endpoint
                yield view.broker_id, host or session.dialled_host, port, view.rack

    def wake_readers(self, key: TopicPartition) -> None:
        """Have consumers and followers look again at a partition to which something happened."""
        for session in self.fetch_sessions.touched(key):
            self.fetch_purgatory.check(session)
        self.fetch_purgatory.check(key)

    def appended(self, partition: Partition) -> None:
        """Wake whoever waits for new records or a higher watermark of a partition."""
        key = partition.topic_partition
        self.wake_readers(key)
        self.produce_purgatory.check(key)
        if partition.log.has_finished_segment_to_flush:
            self.flusher.request_finished(partition)

    def storage_failed(self, partition: Partition, failure: StorageError) -> None:
        """Note that the disk refused a write."""
        logger.error("cannot append to %s: %s", partition.topic_partition, failure)
        self.log_failures.of_partition(partition.topic_partition, failure)

    def storage_failed_reading(self, topic: str, partition: int, failure: StorageError) -> None:
        """Note that the disk refused a read."""
        logger.error("cannot read %s-%d: %s", topic, partition, failure)
        self.log_failures.of_partition((topic, partition), failure)

    async def store_configs(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        """Make configs durable and let them act."""
        with refused_as():
            await self.config_store.set(entity_type, name, values)
        self.configs_changed(entity_type, name, values)

    async def ask_controller(self, request: Message, timeout_ms: int) -> Message:
        """Ask the controller, which may be here."""
        if self.controller.term is not None:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    return await answer_here(self, request)
            except TimeoutError:  # it waits for the coordination service, which may be away
                raise RequestError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the controller, which is here, was not done within {timeout_ms} ms",
                ) from None
        controller = self.cluster.controller_id
        answer: Message = await self.peers.ask(controller, request, timeout_ms)
        return answer

    def check_controller(self) -> None:
        """Raise NOT_CONTROLLER unless this broker is the controller."""
        if self.controller.term is None:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")

    # what the controller does to this broker

    async def learn_topic_configs(self, topics: Collection[str]) -> None:
        """Read the configs of topics that are new here."""
        if topics:
            for topic, configs in (await self.config_store.get_each("topics", topics)).items():
                self.configs.set_topic(topic, configs)

    def role_taken(self, partition: Partition) -> None:
        """A partition is led or followed from now on: who waits for it, and its coordinator."""
        key = partition.topic_partition
        for host in (self.groups, self.transactions):
            if host.topic == key.topic:
                if partition.is_leader:
                    host.lead_all([partition])
                else:
                    host.resign(key.partition)
        if not partition.is_leader:
            self.relocations.cancel(key)
        self.wake_readers(key)
        self.produce_purgatory.check(key)
        self.deletion_purgatory.check(key)

    def watermark_rose(self, partition: Partition) -> None:
        """Wake who waits for records to be safe, or to become visible."""
        key = partition.topic_partition
        self.produce_purgatory.check(key)
        self.wake_readers(key)

    def followed(self, partition: Partition) -> None:
        """Records came from a partition's leader: consumers may read here, too."""
        self.wake_readers(partition.topic_partition)
        if partition.log.has_finished_segment_to_flush:
            self.flusher.request_finished(partition)

    def cluster_changed(self) -> None:
        """The controller has told who is alive and who leads."""
        self.fetchers.cluster_changed()
        self.deletion_purgatory.check(LIVE_BROKERS)

    def topic_removed(self, topic: str) -> None:
        """A topic is being deleted: nobody finds it any more."""
        self.configs.set_topic(topic, None)
        self.groups.topics_deleted(topic)

    def configs_changed(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Let changed configs act on the partitions they concern."""
        if entity_type == "topics":
            if self.configs.knows(name):  # else they are read when the topic comes
                self.configs.set_topic(name, configs)
                self._configure(topic=name)
        elif entity_type == "brokers" and self.configs.set_dynamic(name, configs):
            self._configure(topic=None)
            self.cleaning.start()
            self.network.configure(self.options)
        if UNCLEAN_ELECTIONS in configs:
            self.controller.unclean_election_allowed()

    def _configure(self, topic: str | None) -> None:
        for key, partition in self.partitions.items():
            if topic is None or key[0] == topic:
                overrides = self.configs.overrides_of(key[0])
                partition.log.configure(self.configs.topic_options(overrides))

    # life

    @property
    def network(self) -> Network:
        """Return the listeners of a broker that has begun to start."""
        assert self._network is not None
        return self._network

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return where this broker listens, with the real ports."""
        return self.network.endpoints

    async def start(self) -> None:
        """Serve; raises with the reason, and leaves nothing behind, if that is not possible."""
        loop = asyncio.get_running_loop()
        options = self.static_options
        if self._own_executor:
            self._executor = ThreadPoolExecutor(options.num_io_threads, "barnabas-io")
        self._files = self._files or DiskFiles()
        self.lost = asyncio.Event()
        self.lost_reason = ""
        self.alarm = Alarm(loop)
        self.fetch_purgatory = Purgatory("fetch", self.alarm.wheel)
        self.produce_purgatory = Purgatory("produce", self.alarm.wheel)
        self.deletion_purgatory = Purgatory("delete-records", self.alarm.wheel)
        self.fetch_sessions = FetchSessions(
            options.max_incremental_fetch_session_cache_slots,
            lambda: self._random.randrange(1, 2**31),
        )
        self.flusher = Flusher(self._executor, self.now_ms, self._flushed, self._flush_failed)
        self.logs = Logs(
            self._files,
            options.log_directories,
            self._executor,
            self._random.random,
            self._random_bytes,
        )
        try:
            await self._join_cluster()
            await self._load()
            await self._serve()
        except BaseException:
            await self._abandon()
            raise
        self._running = True

    async def _join_cluster(self) -> None:
        options = self.static_options
        first = options.log_directories[0].rstrip("/")
        if self._coordination is None and options.zookeeper_connect is not None:
            self._coordination = zookeeper_tree(options)
        elif self._coordination is None:
            self._coordination = embedded_tree(self.logs, self._executor, first)
        self.tree = self._coordination
        self.membership = Membership(self.tree, options, self._random_bytes)
        await self.membership.join(self.logs.identity())
        self.cluster.cluster_id = self.membership.cluster_id
        self.broker_id = self.membership.broker_id
        self.logs.write_identity(self.broker_id, self.cluster.cluster_id)
        self.log_failures = LogFailures(self, first if self._alone else None)
        self.relocations = Relocations(self, self._executor)
        self.retention = Retention(self, self._executor)
        self.cleaning = Cleaning(self, None if self._own_executor else self._executor)
        self.forks = Forks(self, self._executor, self._random_bytes)
        self.logs.on_failure = self.log_failures.of_directory
        self.configs = Configs(
            BrokerSources(options.given),
            self.broker_id,
            lambda topic: self.cluster.topic(topic) is not None,
        )
        self.config_store = ConfigStore(self._coordination)
        self.controller = ControllerHost(self, self._coordination, self._random_bytes)
        self.peers = Peers(self)
        self.control = Control(self)
        self.replicas = Replicas(self)
        self.fetchers = Fetchers(self)
        self.isr_keeper = IsrKeeper(self)
        self.replication_quotas = ReplicationQuotas(lambda: self.options)
        self.config_notices = ConfigNotices(self, self._coordination)
        self.producer_id_blocks = ProducerIdBlocks(self._coordination, self.broker_id)
        self.groups = GroupHost(self, self._random_bytes)
        self.transactions = TransactionHost(self)
        self.tree_offsets = TreeOffsets(self._coordination)
        self.producer_ids = ProducerIds(self.producer_id_blocks.take)
        self.topics = Topics(
            self,
            TopicStore(self._coordination, self.cluster, self._random_bytes),
            options.num_partitions,
            options.default_replication_factor,
        )

    async def _load(self) -> None:
        await self.config_notices.skip()  # what changes while logs are loaded is heard of later
        for name, values in (await self.config_store.get_all("brokers")).items():
            self.configs.set_dynamic(name, values)
        topics = await self.config_store.get_all("topics")
        # A topic may have thousands of partitions.
        options_of = cache(lambda topic: self.configs.topic_options(topics.get(topic, {})))
        await self.logs.load(
            options_of,
            self.now_ms(),
            self.options.num_recovery_threads_per_data_dir,
        )

    async def _serve(self) -> None:
        self._network = Network(self)
        await self._network.bind()
        await self._enter_cluster()
        if self.controller.term is None:
            await self.network.accept()  # so that the controller can tell
        await self.control.until_informed(3 * self.options.zookeeper_session_timeout_ms)
        self.groups.open()
        self.transactions.open()
        if self._alone:
            await adopt(self)
        self.logs.settle_forks(lambda topic_id: self.cluster.topic_by_id(topic_id) is not None)
        for _ in self.logs.offline:
            await self.log_failures.notify()
        self.housekeeping = Housekeeping(self)
        self.housekeeping.start()
        self.cleaning.start()
        self.cluster_session = ClusterSession(
            self.tree, self.controller.resign, self._enter_cluster, self.give_up
        )
        await self.network.accept()

    async def _enter_cluster(self) -> None:
        """Enter the cluster, at the start or after a lost session: each time with a new epoch."""
        await self.controller.resign()
        self.cluster.brokers[self.broker_id] = await self.membership.register(
            self.options, self.network.ports, self.now_ms()
        )
        await self.config_notices.start()
        await self.controller.start()

    @property
    def own_view(self) -> BrokerView:
        """Return this broker as it is registered."""
        return self.membership.view

    @property
    def broker_epoch(self) -> int:
        """Return which life of this broker it is, as its registration says."""
        return self.own_view.epoch

    async def stop(self) -> None:
        """End cleanly: finish what is under way, flush everything, leave the marker."""
        if not self._running:
            return
        await hand_over(self)
        self._running = False
        self.cluster_session.stop()
        await self.isr_keeper.stop()
        await self.fetchers.stop()
        await self.controller.retire()
        self.control.learned.end()  # nobody here decides any more what requests may wait for
        if self.tree.state is not SessionState.CONNECTED:
            # Nobody can be told, and requests that wait for the tree would be waited for in vain.
            await self.tree.close()
        self.network.stop_accepting()
        self.housekeeping.stop()
        await self.network.drain(DRAIN_S_MAX)
        await self.flusher.drain()  # producers that wait for it are told
        await self.network.close()
        self.groups.stop()
        self.transactions.stop()
        await self.transactions.markers.stop()
        self.alarm.stop()
        await self.relocations.stop()
        await self.cleaning.stop()
        await self.flusher.drain()
        await self.housekeeping.drain()
        await self.log_failures.drain()
        self.peers.close()
        await self.logs.close(self.now_ms(), self.broker_epoch)
        assert self._coordination is not None
        await self._coordination.close()
        self._shut_executor()

    async def give_up(self, reason: str) -> None:
        """End because the broker cannot go on; `lost` tells whoever started it."""
        logger.critical("the broker stops: %s", reason)
        self.lost_reason = reason
        try:
            await self.stop()
        finally:
            self.lost.set()

    async def kill(self) -> None:
        """End as a crash of the machine would: what was not flushed is gone, nothing is marked."""
        if not self._running:
            return
        self._running = False
        self.cluster_session.stop()
        await self.isr_keeper.stop()
        await self.fetchers.stop()
        await self.controller.stop()
        self.peers.close()
        self.housekeeping.stop()
        self.groups.stop()
        self.transactions.stop()
        await self.transactions.markers.stop()
        self.alarm.stop()
        self.log_failures.stop()
        self.relocations.abandon()
        await self.cleaning.stop()
        await self.housekeeping.abandon()
        await self.flusher.abandon()
        self.logs.discard_unflushed(self.now_ms())
        await self._abandon()

    async def _abandon(self) -> None:
        if self._network is not None:
            await self._network.close()
        self.logs.abandon()
        if self._coordination is not None:
            await self._coordination.close()
        self._shut_executor()

    def _shut_executor(self) -> None:
        if self._own_executor and isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=False)

    def sweep_connections(self) -> None:
        """Close idle connections and take back large buffers."""
        self.network.sweep()

    def _flushed(self, partition: Partition) -> None:
        if self.partitions.get(partition.topic_partition) is not partition:
            return  # it was deleted meanwhile
        partition.flushed()
        if partition.flush_owed:
            self.flusher.request(partition)
        if not partition.is_leader:
            self.fetchers.flushed(partition)
        self.appended(partition)

    def _flush_failed(self, partition: Partition, failure: StorageError) -> None:
        if self.partitions.get(partition.topic_partition) is not partition:
            return  # it was deleted meanwhile, and its directory renamed
        logger.error("cannot flush %s: %s", partition.topic_partition, failure)
        self.log_failures.of_partition(partition.topic_partition, failure)

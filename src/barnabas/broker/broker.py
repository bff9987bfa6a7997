"""One broker, as its handlers and its controller see it.

Its parts, and what they tell each other through it: who may do what, who is woken when records come
or a watermark rises, what the controller has decided. How the parts are put together, started and
ended is in `lifecycle`.

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
from concurrent.futures import Executor
from functools import cache
from random import Random

from barnabas.broker.cluster.cluster_session import ClusterSession
from barnabas.broker.cluster.config_notices import ConfigNotices
from barnabas.broker.cluster.configs import Configs
from barnabas.broker.cluster.controller_commands import Control
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.controller_requests import answer_here
from barnabas.broker.cluster.membership import Membership
from barnabas.broker.cluster.peers import Peers
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.cluster.topics import Topics
from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.cluster.tree_offsets import TreeOffsets
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.coordinators.markers import MarkerWriter
from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.following.fetchers import Fetchers
from barnabas.broker.following.isr_keeper import IsrKeeper
from barnabas.broker.following.replicas import Replicas
from barnabas.broker.following.replication_quotas import ReplicationQuotas
from barnabas.broker.handlers import CONTROLLER_KEYS, served_apis
from barnabas.broker.handlers.delete_records import LIVE_BROKERS
from barnabas.broker.housekeeping import Housekeeping
from barnabas.broker.lifecycle import Lifecycle
from barnabas.broker.loop import WheelTimer
from barnabas.broker.network.address_changes import AddressChanges
from barnabas.broker.network.router import Served
from barnabas.broker.network.session import Session
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.storage.compaction_workers import CompactionWorkers
from barnabas.broker.storage.forks import Forks
from barnabas.broker.storage.log_failures import LogFailures
from barnabas.broker.storage.logs import Logs
from barnabas.broker.storage.relocations import Relocations
from barnabas.broker.storage.retention import Retention
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Endpoint
from barnabas.coordination.contract import Coordination
from barnabas.log.files import Files
from barnabas.metadata.cluster_view import NO_LEADER, BrokerView, ClusterView
from barnabas.metadata.config_store import ConfigStore
from barnabas.metadata.producer_id_blocks import ProducerIdBlocks
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import AllowAll, Authorizer, Operation, ResourceType
from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.broker")

UNCLEAN_ELECTIONS = "unclean.leader.election.enable"


class Broker:
    """A broker of a cluster; `start` makes it serve, `stop` ends it cleanly, `kill` does not."""

    # There from the start on, in the order in which `lifecycle` makes them.
    lost: asyncio.Event
    lost_reason: str
    timer: WheelTimer
    logs: Logs
    tree: Coordination
    membership: Membership
    broker_id: int
    partitions: HostedPartitions
    log_failures: LogFailures
    relocations: Relocations
    retention: Retention
    cleaning: CompactionWorkers
    forks: Forks
    configs: Configs
    config_store: ConfigStore
    controller: ControllerHost
    peers: Peers
    control: Control
    replicas: Replicas
    fetchers: Fetchers
    isr_keeper: IsrKeeper
    replication_quotas: ReplicationQuotas
    config_notices: ConfigNotices
    producer_id_blocks: ProducerIdBlocks
    groups: GroupHost
    marker_writer: MarkerWriter
    transactions: TransactionHost
    tree_offsets: TreeOffsets
    producer_ids: ProducerIds
    topics: Topics
    housekeeping: Housekeeping
    silence: Silence
    cluster_session: ClusterSession
    network: SocketServer
    address_changes: AddressChanges

    def __init__(
        self,
        options: BrokerOptions,
        *,
        coordination: Coordination | None = None,
        files: Files | None = None,
        executor: Executor | None = None,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.static_options = options
        self.authorizer: Authorizer = AllowAll()
        self.cluster = ClusterView()
        self.metrics = Registry()
        self.alone = coordination is None and options.zookeeper_connect is None
        """Whether it has its tree for itself, and no other broker can come."""
        self.served = served_apis(alone=self.alone)
        self.served_to_clients = self.served
        """What is served outside of the control plane, where there is one."""
        if options.endpoints.control_plane is not None:
            self.served_to_clients = {
                key: served for key, served in self.served.items() if key not in CONTROLLER_KEYS
            }
        self.clock = clock
        """Seconds that never step back: how long something took, and how long something counts."""
        self._wall_clock = wall_clock
        self._life = Lifecycle(
            self, coordination, files, executor, random or Random(), random_bytes
        )

    # what handlers use

    @property
    def options(self) -> BrokerOptions:
        """Return the options as they act now."""
        return self.configs.options

    def now_ms(self) -> int:
        """Return the wall clock's time, which records and logs carry."""
        return int(self._wall_clock() * 1000)

    def served_to(self, session: Session) -> Mapping[int, Served]:
        """Return what is served on a connection, by API key."""
        return self.served if session.privileged else self.served_to_clients

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

    def shown_leader(self, topic: str, partition: int, leader: int) -> int:
        """Return who leads as clients are told: nobody, where this broker may not say so."""
        if leader == self.broker_id and self.silence.hides:
            hosted = self.partitions.get((topic, partition))
            if hosted is None or not hosted.is_leader:
                return NO_LEADER
        return leader

    @property
    def shown_controller(self) -> int:
        """Return who is the controller as clients are told; not this broker while it is silent."""
        controller = self.cluster.controller_id
        return -1 if controller == self.broker_id and self.silence.is_silent else controller

    def is_in_sync(self, key: TopicPartition) -> bool:
        """Tell whether this broker's replica is in sync, as far as the controller has told."""
        view = self.cluster.topic(key.topic)
        if view is None or key.partition >= len(view.partitions):
            return False
        return self.broker_id in view.partitions[key.partition].isr

    def endpoints_for(self, session: Session) -> Iterator[tuple[int, str, int, str | None]]:
        """Yield id, host, port and rack of each broker, as the session's listener reaches them.

        A silent broker leaves itself out: a client that is connected to nobody else would ask it
        again and again who leads.
        """
        for view in self.cluster.brokers.values():
            if view.broker_id == self.broker_id and self.silence.is_silent:
                continue
            endpoint = view.endpoints.get(session.listener)
            if endpoint is not None:
                host, port = endpoint
                yield view.broker_id, host or session.dialled_host, port, view.rack

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
        listener = self.options.endpoints.control_plane
        answer: Message = await self.peers.ask(controller, request, timeout_ms, listener)
        return answer

    def check_controller(self) -> None:
        """Raise NOT_CONTROLLER unless this broker is the controller."""
        if self.controller.term is None or self.silence.is_silent:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")

    # what the controller does to this broker

    async def learn_topic_configs(self, topics: Collection[str]) -> None:
        """Read the configs of topics that are new here; those that make no sense stay unknown."""
        if topics:
            for topic, configs in (await self.config_store.get_readable("topics", topics)).items():
                self.configs.set_topic(topic, configs)

    def controller_spoke(self, controller_id: int, controller_epoch: int) -> None:
        """A controller was heard; from now on older epochs are not."""
        self.cluster.controller_id = controller_id

    def role_taken(self, partition: Partition) -> None:
        """A partition is led or followed from now on: who waits for it, and its coordinator."""
        if not partition.is_assigned_leader:
            self.relocations.cancel(partition.topic_partition)
        self.role_shown(partition)

    def role_shown(self, partition: Partition) -> None:
        """A partition is or is not led here, or this broker may or may not say so."""
        key = partition.topic_partition
        for host in (self.groups, self.transactions):
            if host.topic == key.topic:
                if partition.is_leader:
                    host.lead_all([partition])
                else:
                    host.resign(key.partition)
        self.partitions.role_changed(key)

    def cluster_changed(self) -> None:
        """The controller has told who is alive and who leads."""
        self.fetchers.cluster_changed()
        self.partitions.deletion_purgatory.check(LIVE_BROKERS)

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
            self._life.use_threads(self.options.num_io_threads)
            self.fetchers.resize()
            self.network.configure(self.options)
            self.address_changes.look()
        if UNCLEAN_ELECTIONS in configs:
            self.controller.unclean_election_allowed()

    def _configure(self, topic: str | None) -> None:
        options_of = cache(self.configs.options_of)  # a topic may have thousands of partitions
        for key, partition in self.partitions.items():
            if topic is None or key[0] == topic:
                options = options_of(key[0])
                if options is not None:
                    partition.log.configure(options)

    # life

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return where this broker listens, with the real ports."""
        return self.network.endpoints

    @property
    def own_view(self) -> BrokerView:
        """Return this broker as it is registered."""
        return self.membership.view

    @property
    def broker_epoch(self) -> int:
        """Return which life of this broker it is, as its registration says."""
        return self.own_view.epoch

    async def start(self) -> None:
        """Serve; raises with the reason, and leaves nothing behind, if that is not possible."""
        await self._life.start()

    async def stop(self) -> None:
        """End cleanly: finish what is under way, flush everything, leave the marker."""
        await self._life.stop()

    async def kill(self) -> None:
        """End as a crash of the machine would: what was not flushed is gone, nothing is marked."""
        await self._life.kill()

    async def give_up(self, reason: str) -> None:
        """End because the broker cannot go on; `lost` tells whoever started it."""
        logger.critical("the broker stops: %s", reason)
        self.lost_reason = reason
        try:
            await self.stop()
        finally:
            self.lost.set()

    def sweep_connections(self) -> None:
        """Close idle connections and take back large buffers."""
        self.network.sweep()

"""The parts of a broker, and how they are wired.

Each part is given what it uses. An event in one part that concerns several others goes through the
broker: its methods `role_taken`, `configs_changed` and so on are passed as callbacks here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from barnabas.broker.cluster.acls import Acls
from barnabas.broker.cluster.config_notices import ConfigNotices
from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.controller_metrics import ControllerMetrics
from barnabas.broker.cluster.controller_requests import BrokerToController
from barnabas.broker.cluster.delegation_tokens import SharedTokens
from barnabas.broker.cluster.dialer import Dialer
from barnabas.broker.cluster.initial_users import InitialUsers
from barnabas.broker.cluster.peers import Peers
from barnabas.broker.cluster.registration import Registration, SessionRenewal
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.cluster.topics import Topics
from barnabas.broker.cluster.tree_offsets import TreeOffsets
from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.coordinators.marker_sender import MarkerSender
from barnabas.broker.coordinators.marker_writer import MarkerWriter
from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.diary.topic_writer import TopicWriter, diary_topic
from barnabas.broker.housekeeping import Housekeeping
from barnabas.broker.loop import LongSteps, WheelTimer
from barnabas.broker.monitoring.cluster_exporter import ClusterExporter
from barnabas.broker.monitoring.front import loop_monitor, show_front
from barnabas.broker.monitoring.monitoring import Monitoring, Watched
from barnabas.broker.network import request_log
from barnabas.broker.network.address_changes import AddressChanges
from barnabas.broker.network.client_quotas import ClientQuotas
from barnabas.broker.network.client_telemetry import ClientTelemetry
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.router import Router
from barnabas.broker.network.sasl import Sasl
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.fetch_sessions import FetchSessions
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetcher import FetcherContext
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.broker.replication.isr_proposals import IsrProposals
from barnabas.broker.replication.replicas import Replicas
from barnabas.broker.replication.replication_quotas import ReplicationQuotas
from barnabas.broker.storage.compaction_workers import CompactionWorkers
from barnabas.broker.storage.forks import Forks
from barnabas.broker.storage.log_failures import LogFailures
from barnabas.broker.storage.logs import Logs
from barnabas.broker.storage.relocations import Relocations
from barnabas.broker.storage.retention import Retention
from barnabas.config.broker import BrokerOptions
from barnabas.diary import subjects
from barnabas.log.validation import NEWEST_VERSION
from barnabas.metadata.acl_store import AclStore
from barnabas.metadata.config_store import ConfigStore
from barnabas.metadata.initial_user_store import InitialUserStore
from barnabas.metadata.producer_id_blocks import ProducerIdBlocks
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.metadata.topic_store import TopicStore
from barnabas.metrics.catalogue.logs import FLUSH_TIME
from barnabas.model.note import Note
from barnabas.quotas.sampled_rate import Windows
from barnabas.security.acl.authorizer import AclAuthorizer
from barnabas.security.delegation_tokens import DelegationTokens

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.otlp_export import OtlpExport


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All parts of a broker that has joined its cluster."""

    timer: WheelTimer
    partitions: HostedPartitions
    # storage
    logs: Logs
    log_failures: LogFailures
    compaction: CompactionWorkers
    relocations: Relocations
    retention: Retention
    forks: Forks
    # cluster
    registration: Registration
    session_renewal: SessionRenewal
    peers: Peers
    silence: Silence
    control: ControllerCommands
    controller: ControllerHost
    to_controller: BrokerToController
    config_store: ConfigStore
    config_notices: ConfigNotices
    acls: Acls | None
    """The ACLs; None without an authorizer."""
    initial_users: InitialUsers
    topics: Topics
    tree_offsets: TreeOffsets
    # following
    replication_quotas: ReplicationQuotas
    fetchers: Fetchers
    replicas: Replicas
    isr_proposals: IsrProposals
    # coordinators
    groups: GroupHost
    marker_writer: MarkerWriter
    transactions: TransactionHost
    producer_id_blocks: ProducerIdBlocks
    producer_ids: ProducerIds
    # the diary
    diary: TopicWriter | None
    """Keeps the diary in its topic; None if barnabas.diary.enable=false."""
    diary_peers: Peers
    # network
    quotas: ClientQuotas
    telemetry: ClientTelemetry
    otlp_export: OtlpExport | None
    """Pushes metrics; None without an endpoint."""
    delegation_tokens: DelegationTokens
    shared_tokens: SharedTokens
    sasl: Sasl
    network: SocketServer
    request_metrics: RequestMetrics
    address_changes: AddressChanges
    # monitoring
    cluster_peers: Peers
    """For the exporter alone: what it asks may take long, and must not delay others."""
    cluster_exporter: ClusterExporter

    housekeeping: Housekeeping
    monitoring: Monitoring


def build_parts(
    broker: Broker,
    logs: Logs,
    registration: Registration,
    *,
    executor: Executor | None,
    compaction_executor: Executor | None,
    vital_path: str | None,
    random: Random,
    random_bytes: Callable[[int], bytes],
    enter_cluster: Callable[[], Awaitable[None]],
    on_session_refused: Callable[[], object],
) -> Parts:
    """Build the parts of a broker from its logs and its registration.

    If two parts use each other, the first one is given a lambda that finds the second later.
    """
    tree, broker_id = registration.tree, registration.broker_id
    cluster, configs = broker.cluster, broker.configs
    now_ms, note = broker.now_ms, broker.journal.note

    def options() -> BrokerOptions:
        return configs.options

    def broker_epoch() -> int:
        return registration.epoch

    long_steps = LongSteps(broker.clock)
    timer = WheelTimer(asyncio.get_running_loop(), before_running=lambda: silence.check())
    partitions = HostedPartitions(
        timer,
        executor,
        now_ms,
        FetchSessions(
            options().max_incremental_fetch_session_cache_slots,
            lambda: random.randrange(1, 2**31),
        ),
        check_silence=lambda: silence.check(),
        on_follower_flushed=lambda partition: fetchers.flushed(partition),
        on_storage_failure=lambda key, failure: log_failures.of_partition(key, failure),
        flush_times=broker.metrics.histogram(FLUSH_TIME),
    )
    replication_quotas = ReplicationQuotas(options)

    log_failures = LogFailures(
        logs,
        partitions,
        tree,
        broker_id,
        timer.now_ms,
        vital_path=vital_path,
        cancel_moves_to=lambda path: relocations.cancel_to(path),
        drop=lambda key: replicas.drop(key),
        give_up=broker.give_up,
        note=note,
    )
    logs.on_failure = log_failures.of_directory
    logs.note = note
    compaction = CompactionWorkers(
        logs,
        partitions,
        compaction_executor,
        options,
        now_ms,
        broker.metrics,
        log_failures.of_partition,
        broker.note_partition,
    )
    relocations = Relocations(
        logs,
        executor,
        now_ms,
        timer.now_ms,
        throttle=replication_quotas.directories,
        stop_compaction=compaction.stop_for,
        on_failure=log_failures.of_directory,
    )
    retention = Retention(
        logs,
        partitions,
        executor,
        now_ms,
        log_failures.of_partition,
        broker.metrics,
        broker.note_partition,
    )

    dialer = Dialer(
        options,
        tls_to=lambda listener: network.tls_to(listener),
        login_to=lambda listener: sasl.login_to(listener),
    )
    peers = Peers(broker_id, cluster, options, dialer)
    silence = Silence(
        registration,
        cluster,
        partitions,
        Peers(broker_id, cluster, options, dialer),
        broker.clock,
        enabled=options().barnabas_lost_session_silence_enable and not broker.alone,
        controller_epoch=lambda: control.controller_epoch,
        on_role_shown=broker.role_shown,
    )
    fetchers = Fetchers(
        FetcherContext(
            broker_id,
            broker_epoch,
            options,
            timer.now_ms,
            now_ms,
            cluster,
            partitions,
            replication_quotas.follower,
            address_of=peers.address_of,
            dialer=dialer,
            topic_name=broker.topic_name,
            stop_compaction=compaction.stop_for,
            write_checkpoints=logs.write_checkpoints,
            on_fenced=silence.fenced,
            note=broker.note_partition,
        )
    )
    isr_metrics = IsrMetrics(broker.metrics)
    replicas = Replicas(
        broker_id,
        partitions,
        cluster,
        configs,
        silence,
        fetchers,
        logs,
        log_failures,
        relocations,
        compaction,
        now_ms,
        timer.now_ms,
        isr_metrics,
        learn_topic_configs=broker.learn_topic_configs,
        on_role_taken=broker.role_taken,
        on_role_shown=broker.role_shown,
        note=note,
    )

    config_store = ConfigStore(tree)
    acl_store = AclStore(tree, random.random)
    acls: Acls | None = None
    if isinstance(broker.authorizer, AclAuthorizer):
        acls = Acls(tree, acl_store, broker.authorizer, now_ms)
    initial_users = InitialUsers(options, InitialUserStore(tree, config_store, acl_store), executor)
    control = ControllerCommands(
        registration,
        cluster,
        options,
        learn_topic_configs=broker.learn_topic_configs,
        take_roles=replicas.take_roles,
        stop_replicas=replicas.stop,
        on_controller=broker.controller_seen,
        on_topic=replicas.metadata_received,
        on_topic_removed=broker.topic_removed,
        on_cluster_changed=broker.cluster_changed,
        note=note,
    )
    controller = ControllerHost(
        broker_id,
        tree,
        cluster,
        configs,
        config_store,
        control,
        dialer,
        silence,
        now_ms,
        random_bytes,
        ControllerMetrics(broker.metrics),
        long_steps,
        note,
    )
    to_controller = BrokerToController(controller, cluster, peers, options)
    isr_proposals = IsrProposals(
        broker_id,
        broker_epoch,
        partitions,
        isr_metrics,
        ask_controller=to_controller.ask,
        note=note,
    )

    collaborators = Collaborators(
        broker_id=broker_id,
        options=options,
        now_ms=now_ms,
        timer=timer,
        cluster=cluster,
        partitions=partitions,
        absent=broker.absent,
        shown_leader=broker.shown_leader,
        create_topic=lambda topic: topics.create_internal(topic),
        topic_is_gone=lambda name: topics.is_gone(name),
        ask=peers.ask,
        allows=broker.allows,
        note=note,
        metrics=broker.metrics,
    )
    groups = GroupHost(collaborators, random_bytes)
    marker_writer = MarkerWriter(collaborators, groups.transaction_ended)
    transactions = TransactionHost(collaborators, MarkerSender(collaborators, marker_writer))
    producer_id_blocks = ProducerIdBlocks(tree, broker_id)

    async def ensure_internal(topic: str) -> bool:
        if diary is not None and topic == DIARY_TOPIC:
            await diary.ensure_topic()
            return True
        for host in (groups, transactions):
            if host.topic == topic:
                await host.ensure_topic()
                return True
        return False

    topics = Topics(
        TopicStore(tree, cluster, random_bytes),
        cluster,
        control.learned,
        controller,
        options(),
        ensure_internal,
        note,
    )
    # Connections of its own: a quota may throttle them, as those of any producer.
    diary_peers = Peers(broker_id, cluster, options, dialer)
    diary = _diary(broker, registration, partitions, topics, diary_peers)
    forks = Forks(
        logs,
        partitions,
        cluster,
        executor,
        now_ms,
        random_bytes,
        topic_options=configs.topic_options,
        absent=broker.absent,
        write_markers=marker_writer.write,
    )

    quotas = ClientQuotas(options(), timer.now_ms, broker.metrics, broker.is_from_broker, note)
    secret = options().delegation_token_secret_key or options().delegation_token_master_key
    delegation_tokens = DelegationTokens(secret.value if secret else None, random_bytes)
    sasl = Sasl(
        options,
        broker.served,
        executor,
        timer.now_ms,
        now_ms,
        broker.metrics,
        random.random,
        random_bytes,
        delegation_tokens,
        f"{registration.cluster_id} {secret.value if secret else ''}".encode(),
        broker.audit,
    )
    shared_tokens = SharedTokens(tree, delegation_tokens, now_ms)
    request_metrics = RequestMetrics(broker.metrics, broker.served, long_steps)
    network = _network(broker, silence, timer, executor, quotas, sasl, request_metrics)
    show_front(broker.metrics, partitions, network, executor)
    monitor = loop_monitor(
        broker.metrics,
        broker.clock,
        broker.thread_clock,
        lambda: request_metrics.blocked_s,
        long_steps,
        lambda cause, data: note(Note("loop.stall", subjects.broker(broker_id), cause, data)),
    )
    cluster_peers = Peers(broker_id, cluster, options, dialer)
    return Parts(
        timer=timer,
        partitions=partitions,
        logs=logs,
        log_failures=log_failures,
        compaction=compaction,
        relocations=relocations,
        retention=retention,
        forks=forks,
        registration=registration,
        session_renewal=SessionRenewal(
            tree,
            controller.resign,
            enter_cluster,
            broker.give_up,
            on_session_refused,
            broker.session_lost,
            broker.session_back,
        ),
        peers=peers,
        silence=silence,
        control=control,
        controller=controller,
        to_controller=to_controller,
        config_store=config_store,
        config_notices=ConfigNotices(tree, config_store, broker.configs_changed),
        acls=acls,
        initial_users=initial_users,
        topics=topics,
        tree_offsets=TreeOffsets(tree),
        replication_quotas=replication_quotas,
        fetchers=fetchers,
        replicas=replicas,
        isr_proposals=isr_proposals,
        groups=groups,
        marker_writer=marker_writer,
        transactions=transactions,
        producer_id_blocks=producer_id_blocks,
        producer_ids=ProducerIds(producer_id_blocks.take),
        diary=diary,
        diary_peers=diary_peers,
        quotas=quotas,
        telemetry=ClientTelemetry(
            options, executor, timer.now_ms, now_ms, broker.metrics, random_bytes
        ),
        otlp_export=_otlp_export(broker, broker_id, registration.cluster_id),
        delegation_tokens=delegation_tokens,
        shared_tokens=shared_tokens,
        sasl=sasl,
        network=network,
        request_metrics=request_metrics,
        address_changes=AddressChanges(network, registration, cluster, options, now_ms),
        cluster_peers=cluster_peers,
        cluster_exporter=ClusterExporter(cluster, cluster_peers.ask),
        housekeeping=Housekeeping(
            options,
            now_ms,
            partitions,
            logs,
            retention,
            isr_proposals,
            controller,
            groups,
            transactions,
            network,
            quotas,
            shared_tokens,
            initial_users,
            long_steps,
            None if monitor is None else monitor.tick,
        ),
        monitoring=Monitoring(
            broker.metrics,
            Watched(
                broker_id=broker_id,
                options=options,
                now_ms=now_ms,
                clock_ms=timer.now_ms,
                cluster=cluster,
                partitions=partitions,
                logs=logs,
                fetchers=fetchers,
                controller=controller,
                control=control,
                groups=groups,
                transactions=transactions,
                ask=cluster_peers.ask,
                executor=executor,
                loop=monitor,
            ),
        ),
    )


def _otlp_export(broker: Broker, broker_id: int, cluster_id: str) -> OtlpExport | None:
    if not broker.options.barnabas_otel_metrics_endpoint:
        return None
    # Imported here: a broker that pushes nothing need not have an HTTP client in memory.
    from barnabas.broker.network.otlp_export import OtlpExport

    return OtlpExport(broker.options, broker.metrics, broker.now_ms, broker_id, cluster_id)


def _network(
    broker: Broker,
    silence: Silence,
    timer: WheelTimer,
    executor: Executor | None,
    quotas: ClientQuotas,
    sasl: Sasl,
    metrics: RequestMetrics,
) -> SocketServer:
    """Return the socket server, not bound yet, with a router for each plane."""
    options, note = broker.options, broker.journal.note
    metrics.log_requests(request_log.is_on())
    broker.configs.loggers.watch(lambda: metrics.log_requests(request_log.is_on()))
    control_plane = options.endpoints.control_plane
    control_plane_apis = {
        key: control_plane or "" for key in broker.served if key not in broker.served_to_clients
    }
    data, control = (
        Router(
            broker,
            served,
            silence,
            broker.clock,
            metrics,
            quotas,
            options.queued_max_requests,
            other,
        )
        for served, other in ((broker.served_to_clients, control_plane_apis), (broker.served, {}))
    )
    windows = Windows(options.quota_window_num, options.quota_window_size_seconds * 1000)
    return SocketServer(
        data, control, timer.now_ms, executor, windows, broker.metrics, sasl, broker.audit, note
    )


def _diary(
    broker: Broker,
    registration: Registration,
    partitions: HostedPartitions,
    topics: Topics,
    peers: Peers,
) -> TopicWriter | None:
    """Return what keeps the diary in its topic, unless that is switched off."""
    options = broker.options
    if not options.barnabas_diary_enable:
        return None

    def append(batch: bytes) -> None:
        partition = partitions.get((DIARY_TOPIC, 0))
        if partition is None:
            raise broker.absent(DIARY_TOPIC, 0)
        partitions.append(
            partition, bytearray(batch), 1, NEWEST_VERSION, broker.now_ms(), origin="coordinator"
        )

    return TopicWriter(
        registration.broker_id,
        broker.now_ms(),
        broker.cluster,
        broker.metrics,
        broker.now_ms,
        new_topic=lambda: diary_topic(broker.options),
        create_topic=topics.create_internal,
        append=append,
        ask=peers.ask,
    )

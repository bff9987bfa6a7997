"""One broker, as its handlers and its controller see it.

Its parts notify each other through it of what concerns several of them, such as roles, configs and
cluster metadata. `parts` builds the parts, `lifecycle` starts and stops them.

Everything external is passed in: options, coordination, files, clock, randomness. The same broker
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
from typing import Any

from barnabas.broker.cluster.configs import CLIENT_METRICS_ENTITY, Configs
from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.diary.journal import Journal
from barnabas.broker.handlers import CONTROLLER_KEYS, served_apis
from barnabas.broker.handlers.broker_traffic import sent_by_broker
from barnabas.broker.handlers.delete_records import LIVE_BROKERS
from barnabas.broker.lifecycle import Lifecycle
from barnabas.broker.monitoring.broker_state import BrokerState
from barnabas.broker.network.request import Request
from barnabas.broker.network.router import Served
from barnabas.broker.network.session import Session
from barnabas.broker.parts import Parts
from barnabas.config.broker import BrokerOptions
from barnabas.config.broker.security import parse_super_users
from barnabas.config.listeners import Endpoint
from barnabas.config.sources import BrokerSources
from barnabas.coordination.contract import Coordination
from barnabas.diary import subjects
from barnabas.diary.ring import FOLD_MS
from barnabas.log.files import Files
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metadata.tree_schema import user_of
from barnabas.metrics.catalogue.process import BROKER_STATE
from barnabas.metrics.catalogue.rejections import REJECTIONS
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_LEADER, Uuid
from barnabas.model.note import Note
from barnabas.replication.partition import Partition
from barnabas.security.acl.authorizer import AclAuthorizer
from barnabas.security.acl.binding import Binding, title
from barnabas.security.audit import AuditLog
from barnabas.security.authorizer import (
    CLUSTER_NAME,
    AllowAll,
    Authorizer,
    Operation,
    ResourceType,
    authorized_bits,
)
from barnabas.security.principal import Principal
from barnabas.wire.apis import API_BY_KEY

logger = logging.getLogger("barnabas.broker")

QUOTA_ENTITIES = ("users", "clients")
UNCLEAN_ELECTIONS = "unclean.leader.election.enable"
CHANGES: Mapping[str, tuple[str, Callable[[Mapping[str, str]], str]]] = {
    "configs changed": ("config.changed", lambda told: subjects.configured(told["resource"])),
    "quota changed": ("quota.changed", lambda told: f"quota:{told['entity']}"),
    "acl added": ("acl.changed", lambda told: "acls"),
    "acl removed": ("acl.changed", lambda told: "acls"),
}
"""The changes in the audit log that are in the diary too, and what they are about."""
DENIALS_MAX = 1_000
"""For how many denials the rule is remembered while their entries are folded."""


class Broker:
    """A broker of a cluster; `stop` ends it cleanly, `kill` as a crash would."""

    def __init__(
        self,
        options: BrokerOptions,
        *,
        coordination: Coordination | None = None,
        files: Files | None = None,
        executor: Executor | None = None,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        thread_clock: Callable[[], float] | None = time.thread_time,
        random: Random | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.static_options = options
        self.authorizer: Authorizer = AllowAll()
        if options.authorizer_class_name:
            self.authorizer = AclAuthorizer(
                [Principal(kind, name) for kind, name in parse_super_users(options.super_users)],
                allow_everyone=options.allow_everyone_if_no_acl_found,
            )
        self.has_acls = bool(options.authorizer_class_name)
        """Whether an authorizer is configured; if not, requests about ACLs are rejected."""
        self.audit = AuditLog(
            self.now_ms,
            lambda ms, act: asyncio.get_running_loop().call_later(ms / 1000, act),
        )
        self.cluster = ClusterView()
        self.configs = Configs(
            BrokerSources(options.given),
            lambda: self.broker_id,
            lambda topic: self.cluster.topic(topic) is not None,
            lambda options: self.parts.network.check_tls(options),
            random_bytes,
        )
        self.metrics = Registry()
        self.journal = Journal(self.metrics, self.now_ms)
        self._denials: dict[tuple[str, str, Operation, str], tuple[int, str]] = {}
        self._lost_ms = 0
        self.metrics.gauge(BROKER_STATE, lambda: self.state)
        self.state = BrokerState.NOT_RUNNING
        self.alone = coordination is None and options.zookeeper_connect is None
        """Whether its coordination is embedded: no other broker can join."""
        self.served = served_apis(
            alone=self.alone, telemetry=options.barnabas_client_telemetry_enable
        )
        self.served_to_clients = self.served
        """What is served outside of the control plane, if there is one."""
        if options.endpoints.control_plane is not None:
            self.served_to_clients = {
                key: served for key, served in self.served.items() if key not in CONTROLLER_KEYS
            }
        self.clock = clock
        """A monotonic clock in seconds, for durations and timeouts."""
        self.thread_clock = thread_clock
        """The CPU time of the loop's thread in seconds; None where time is virtual."""
        self._wall_clock = wall_clock
        self.lost = asyncio.Event()
        """Set when the broker has stopped by itself; `lost_reason` says why."""
        self.lost_reason = ""
        self._life = Lifecycle(
            self, coordination, files, executor, random or Random(), random_bytes
        )

    def take_parts(self, parts: Parts) -> None:
        """Set the parts, once the broker has joined its cluster; handlers use them from here."""
        self.parts = parts
        self.broker_id = parts.registration.broker_id
        self.journal.identify(self.broker_id)
        self.tree = parts.registration.tree
        self.timer = parts.timer
        self.partitions = parts.partitions
        self.logs = parts.logs
        self.log_failures = parts.log_failures
        self.relocations = parts.relocations
        self.forks = parts.forks
        self.peers = parts.peers
        self.silence = parts.silence
        self.control = parts.control
        self.controller = parts.controller
        self.topics = parts.topics
        self.acls = parts.acls
        self.tree_offsets = parts.tree_offsets
        self.replication_quotas = parts.replication_quotas
        self.isr_proposals = parts.isr_proposals
        self.groups = parts.groups
        self.transactions = parts.transactions
        self.marker_writer = parts.marker_writer
        self.producer_ids = parts.producer_ids
        self.quotas = parts.quotas
        self.telemetry = parts.telemetry
        self.sasl = parts.sasl
        self.delegation_tokens = parts.delegation_tokens

    # what handlers use

    @property
    def options(self) -> BrokerOptions:
        """Return the options in effect."""
        return self.configs.options

    def now_ms(self) -> int:
        """Return the wall clock's time, which is used in records and logs."""
        return int(self._wall_clock() * 1000)

    def served_to(self, session: Session) -> Mapping[int, Served[Broker]]:
        """Return what is served on a connection, by API key."""
        return self.served if session.privileged else self.served_to_clients

    def allows(
        self, session: Session, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        """Ask the authorizer; a denial is in the audit log."""
        allowed = self.authorizer.allows(
            session.principal, session.client_host, operation, resource, name
        )
        if self.has_acls and (not allowed or self.audit.logs_allowed):
            self._audit_decision(session, operation, resource, name, allowed)
        return allowed

    def sees(
        self, session: Session, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        """Ask the authorizer what only filters a response, or has an alternative.

        The client has not asked for this resource by name, so a denial is not in the audit log.
        """
        return self.authorizer.allows(
            session.principal, session.client_host, operation, resource, name
        )

    def allows_any(self, session: Session, operation: Operation, resource: ResourceType) -> bool:
        """Ask the authorizer whether there is at least one such resource."""
        return self.authorizer.allows_any(
            session.principal, session.client_host, operation, resource
        )

    def authorized_operations(self, session: Session, resource: ResourceType, name: str) -> int:
        """Return the bits of what the client may do to a resource."""
        return authorized_bits(
            self.authorizer, session.principal, session.client_host, resource, name
        )

    def allows_cluster(self, session: Session, operation: Operation) -> bool:
        """Ask the authorizer about the cluster itself."""
        return self.allows(session, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def check_cluster(self, session: Session, operation: Operation) -> None:
        """Raise unless the client may do this to the cluster itself."""
        if not self.allows_cluster(session, operation):
            raise RequestError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{session.principal} has no {operation.name} permission on the cluster",
            )

    def check_cluster_action(self, session: Session) -> None:
        """Raise unless the client may act as a broker of this cluster."""
        self.check_cluster(session, Operation.CLUSTER_ACTION)

    def rejected(self, reason: str) -> None:
        """Count that something a client sent is rejected."""
        self.metrics.counter(REJECTIONS, reason).add()

    def audit_change(self, session: Session, event: str, **details: str) -> None:
        """Record a change of security in the audit log; details must not have secrets."""
        self.audit.event(
            event, str(session.principal), session.client_host, session.listener, **details
        )
        change = CHANGES.get(event)
        if change is not None:
            name, subject_of = change
            self.note_client(name, subject_of(details), session, {"change": event, **details})

    def _audit_decision(
        self,
        session: Session,
        operation: Operation,
        resource: ResourceType,
        name: str,
        allowed: bool,
    ) -> None:
        authorizer, principal, host = self.authorizer, session.principal, session.client_host

        def rule() -> Binding | str:
            if not isinstance(authorizer, AclAuthorizer):
                return type(authorizer).__name__
            decision = authorizer.explain(principal, host, operation, resource, name)
            return decision.rule or decision.reason

        if not allowed:
            self._note_denial(session, operation, f"{title(resource)}:{name}", lambda: str(rule()))
        self.audit.decision(
            str(principal),
            host,
            session.listener,
            API_BY_KEY[session.api_key].name if session.api_key in API_BY_KEY else "",
            operation.name,
            f"{title(resource)}:{name}",
            allowed,
            rule,
        )

    def _note_denial(
        self, session: Session, operation: Operation, resource: str, rule: Callable[[], str]
    ) -> None:
        principal, host = str(session.principal), session.client_host
        key = (principal, host, operation, resource)
        now_ms = self.now_ms()
        until_ms, by = self._denials.get(key, (0, ""))
        if (
            not until_ms - FOLD_MS <= now_ms < until_ms
        ):  # finding the rule takes longer than the rest
            if len(self._denials) >= DENIALS_MAX:
                self._denials.clear()
            by = rule()
            self._denials[key] = (now_ms + FOLD_MS, by)
        api = API_BY_KEY[session.api_key].name if session.api_key in API_BY_KEY else ""
        data = {
            "principal": principal,
            "host": host,
            "listener": session.listener,
            "api": api,
            "operation": operation.name,
            "resource": resource,
            "rule": by,
            "denied": [f"{operation.name} on {resource}"],
        }
        subject = subjects.client(principal, host)
        cause = "denied" if " DENY " in by else "no-rule"
        self.journal.note(Note("reject.authorization", subject, cause, data))

    def note_partition(
        self, event: str, key: tuple[str, int], cause: str, data: dict[str, Any]
    ) -> None:
        """Note what this broker did with its replica of a partition."""
        subject = subjects.partition(*key)
        self.journal.note(Note(event, subject, cause, {"broker": self.broker_id, **data}))

    def session_lost(self) -> None:
        """Note that the coordination service has expired this broker's session."""
        self._lost_ms = self.now_ms()
        subject = subjects.broker(self.broker_id)
        self.journal.note(Note("session.lost", subject, "expired", {"epoch": self.broker_epoch}))

    def session_back(self) -> None:
        """Note that this broker is registered again."""
        data = {"took_ms": self.now_ms() - self._lost_ms, "epoch": self.broker_epoch}
        subject = subjects.broker(self.broker_id)
        self.journal.note(Note("session.back", subject, "renewed", data))

    def note_client(self, event: str, subject: str, session: Session, data: dict[str, Any]) -> None:
        """Note what a client has changed, with who it is."""
        by = {"principal": str(session.principal), "host": session.client_host}
        self.journal.note(Note(event, subject, "client", data | by))

    def is_from_broker(self, request: Request[Any]) -> bool:
        """Return whether a broker of this cluster sent a request: quotas do not apply to it."""
        return sent_by_broker(request) and self.allows(
            request.session, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name behind a topic id."""
        topic = self.cluster.topic_by_id(topic_id)
        return topic.name if topic is not None else self.parts.replicas.topic_name(topic_id)

    def absent(self, topic: str, partition: int) -> RequestError:
        """Return the error for a partition that is not hosted here."""
        view = self.cluster.topic(topic)
        if view is not None and 0 <= partition < len(view.partitions):
            if self.broker_id in view.partitions[partition].replicas:
                return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, "the log could not be opened")
            return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has no partition {partition} on this broker",
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
        """Return the leader to show to clients: none while this broker hides that it leads."""
        if leader == self.broker_id and self.silence.hides:
            hosted = self.partitions.get((topic, partition))
            if hosted is None or not hosted.is_leader:
                return NO_LEADER
        return leader

    @property
    def shown_controller(self) -> int:
        """Return the controller to show to clients; not this broker while it is silent."""
        controller = self.cluster.controller_id
        return -1 if controller == self.broker_id and self.silence.is_silent else controller

    def endpoints_for(self, session: Session) -> Iterator[tuple[int, str, int, str | None]]:
        """Yield id, host, port and rack of each broker, as the session's listener reaches them.

        A silent broker omits itself: a client that has no other connection would ask it again and
        again for the leaders.
        """
        for view in self.cluster.brokers.values():
            if view.broker_id == self.broker_id and self.silence.is_silent:
                continue
            endpoint = view.endpoints.get(session.listener)
            if endpoint is not None:
                host, port = endpoint
                yield view.broker_id, host or session.dialled_host, port, view.rack

    async def store_configs(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        """Store configs, then apply them."""
        with refused_as():
            await self.parts.config_store.set(entity_type, name, values)
        self.configs_changed(entity_type, name, values)

    def check_controller(self) -> None:
        """Raise NOT_CONTROLLER unless this broker is the controller."""
        if self.controller.term is None or self.silence.is_silent:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")

    # changes that concern several parts

    async def learn_topic_configs(self, topics: Collection[str]) -> None:
        """Read the configs of topics that are new here; unreadable ones stay unknown."""
        if topics:
            store = self.parts.config_store
            for topic, configs in (await store.get_readable("topics", topics)).items():
                self.configs.set_topic(topic, configs)

    def controller_seen(self, controller_id: int, controller_epoch: int) -> None:
        """Record who the controller is; it has just sent a request."""
        self.cluster.controller_id = controller_id

    def role_taken(self, partition: Partition) -> None:
        """Handle a new role of a partition: cancel a move if it follows, notify its coordinator."""
        if not partition.is_assigned_leader:
            self.relocations.cancel(partition.topic_partition)
        self.role_shown(partition)

    def role_shown(self, partition: Partition) -> None:
        """Handle that a partition is now led here or not, or that this broker shows or hides it."""
        key = partition.topic_partition
        for host in (self.groups, self.transactions):
            if host.topic == key.topic:
                if partition.is_leader:
                    host.lead_all([partition])
                else:
                    host.resign(key.partition)
        self.partitions.role_changed(key)

    def cluster_changed(self) -> None:
        """Handle new metadata: which brokers are alive, and who leads."""
        self.parts.fetchers.cluster_changed()
        self.partitions.deletion_purgatory.check(LIVE_BROKERS)

    def topic_removed(self, topic: str) -> None:
        """Forget a topic that is being deleted."""
        self.configs.set_topic(topic, None)
        self.partitions.traffic.topic_deleted(topic)
        self.groups.topics_deleted(topic)

    def configs_changed(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        """Apply changed configs to the partitions and parts that they concern."""
        if entity_type == "topics":
            if self.configs.knows(name):  # else they are read with the topic's first role
                self.configs.set_topic(name, configs)
                self._configure(topic=name)
        elif entity_type == "brokers" and self.configs.set_dynamic(name, configs):
            self._configure(topic=None)
            self.parts.compaction.start()
            self._life.use_threads(self.options.num_io_threads)
            self.parts.fetchers.resize()
            self.parts.network.configure(self.options)
            self.parts.housekeeping.renew_tls()
            self.parts.address_changes.look()
            self._life.configure_metrics(self.options)
        elif entity_type in QUOTA_ENTITIES or user_of(entity_type) is not None:
            self.quotas.configs_changed(entity_type, name, configs)
            if entity_type == "users":
                self.sasl.user_changed(name, configs)
        elif entity_type == CLIENT_METRICS_ENTITY:
            self.configs.set_client_metrics(name, configs)
            self.telemetry.configs_changed(name, configs)
        elif entity_type == "ips":
            self.parts.network.address_quota_changed(name, configs)
        if UNCLEAN_ELECTIONS in configs:
            self.controller.unclean_election_allowed()

    def _configure(self, topic: str | None) -> None:
        options_of = cache(self.configs.options_of)  # a topic may have thousands of partitions
        for key, partition in self.partitions.items():
            if topic is None or key[0] == topic:
                options = options_of(key[0])
                if options is not None:
                    partition.log.configure(options)

    # lifecycle

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this broker, with the ports that are bound."""
        return self.parts.network.endpoints

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Return where metrics are served over HTTP; None if they are not."""
        return self._life.metrics_address

    @property
    def broker_epoch(self) -> int:
        """Return the epoch of this broker's registration."""
        return self.parts.registration.epoch

    async def start(self) -> None:
        """Start to serve; if that fails, release everything and raise the reason."""
        await self._life.start()

    async def stop(self) -> None:
        """Stop cleanly: finish requests in progress, flush everything, mark the logs as closed."""
        await self._life.stop()

    async def kill(self) -> None:
        """Stop as a crash of the machine would: what was not flushed is lost, nothing is marked."""
        await self._life.kill()

    async def give_up(self, reason: str) -> None:
        """Stop because the broker cannot continue; `lost` notifies its owner."""
        logger.critical("broker %d is shutting down: %s", self.broker_id, reason)
        self.lost_reason = reason
        try:
            if not self._life.is_stopping:  # else that may be waiting for this very task
                await self.stop()
        finally:
            self.lost.set()

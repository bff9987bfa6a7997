"""The replicas on this broker: it leads, follows and stops them as the controller requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from barnabas.broker.cluster.configs import Configs
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.fetchers import Fetchers
from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.broker.storage.compaction_workers import CompactionWorkers
from barnabas.broker.storage.log_failures import LogFailures
from barnabas.broker.storage.logs import Logs
from barnabas.broker.storage.relocations import Relocations
from barnabas.config.topic import TopicOptions
from barnabas.diary import subjects
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DamagedLogError, RequestError, StorageError
from barnabas.model.ids import (
    EPOCH_DURING_DELETION,
    NO_EPOCH,
    NO_LEADER,
    ZERO_UUID,
    TopicPartition,
    Uuid,
)
from barnabas.model.note import Note, NoteSink
from barnabas.replication.leader_context import LeaderContext
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest

logger = logging.getLogger("barnabas.replication")

ROLES_AT_ONCE = 50
TURN_S_MAX = 0.1
"""How long creating logs may block the loop. Not shorter: few requests can be served before the
roles are taken.
"""


class Replicas:
    """Applies the roles that the controller assigns, and drops the replicas that it stops."""

    def __init__(
        self,
        broker_id: int,
        partitions: HostedPartitions,
        cluster: ClusterView,
        configs: Configs,
        silence: Silence,
        fetchers: Fetchers,
        logs: Logs,
        log_failures: LogFailures,
        relocations: Relocations,
        compaction: CompactionWorkers,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
        isr_metrics: IsrMetrics,
        *,
        learn_topic_configs: Callable[[Collection[str]], Awaitable[None]],
        on_role_taken: Callable[[Partition], None],
        on_role_shown: Callable[[Partition], None],
        note: NoteSink,
    ) -> None:
        """Keep `partitions` to those that this broker hosts.

        `on_role_taken` is called for each new role, `on_role_shown` if a partition begins or ceases
        to show that it is led here.
        """
        self._broker_id = broker_id
        self._partitions = partitions
        self._cluster = cluster
        self._configs = configs
        self._silence = silence
        self._fetchers = fetchers
        self._logs = logs
        self._log_failures = log_failures
        self._relocations = relocations
        self._compaction = compaction
        self._now_ms = now_ms
        self._isr_metrics = isr_metrics
        self._learn_topic_configs = learn_topic_configs
        self._on_role_taken = on_role_taken
        self._on_role_shown = on_role_shown
        self._note = note
        self._leader_context = LeaderContext(
            clock_ms,
            lambda other: other in cluster.brokers,
            lambda: configs.options.replica_lag_time_max_ms,
        )
        self._names: dict[Uuid, str] = {}

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic that has roles here but no metadata yet.

        Other brokers that got their roles at the same time use the id at once.
        """
        return self._names.get(topic_id)

    def metadata_received(self, topic_id: Uuid) -> None:
        """Forget a topic's name: from now on the cluster's metadata has it."""
        self._names.pop(topic_id, None)

    async def take_roles(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        """Apply roles; return the error code of each."""
        unread = [
            topic.topic_name
            for topic in request.topic_states
            if not self._configs.knows(topic.topic_name)
        ]
        await self._learn_topic_configs(unread)
        errors: dict[TopicPartition, ErrorCode] = {}
        loop = asyncio.get_running_loop()
        began = loop.time()
        for topic in request.topic_states:
            for start in range(0, len(topic.partition_states), ROLES_AT_ONCE):
                if loop.time() - began > TURN_S_MAX:
                    await asyncio.sleep(0)  # let others run: opening logs has blocked the loop
                    began = loop.time()
                states = topic.partition_states[start : start + ROLES_AT_ONCE]
                self._take(topic.topic_name, topic.topic_id, states, request.broker_epoch, errors)
        self._fetchers.end_idle()
        return errors

    def _take(
        self,
        topic: str,
        topic_id: Uuid,
        states: Sequence[LeaderAndIsrPartitionState],
        broker_epoch: int,
        errors: dict[TopicPartition, ErrorCode],
    ) -> None:
        """Apply roles of one topic, with all consequences, without yielding to the loop.

        They were meant for the given epoch of this broker.
        """
        options = self._options_of(topic)
        if options is None:
            # Not with default options: they could delete what these are meant to keep.
            for state in states:
                errors[TopicPartition(topic, state.partition_index)] = ErrorCode.KAFKA_STORAGE_ERROR
            return
        if topic_id != ZERO_UUID and self._cluster.topic_by_id(topic_id) is None:
            self._names[topic_id] = topic
        led: list[Partition] = []
        followed: list[Partition] = []
        for state in states:
            key = TopicPartition(topic, state.partition_index)
            try:
                partition = self._partition(key, topic_id, state, options, broker_epoch)
                leads_already = partition.is_assigned_leader
                former = partition.assigned_leader, partition.leader_epoch
                former_isr = partition.isr if leads_already else self._known_isr(key, topic_id)
                partition.assume(_role(state))
                self._note_role(partition, *former)
                self._silence.role_assigned(partition, broker_epoch)
            except RequestError as refusal:
                errors[key] = refusal.code
                continue
            except StorageError as failure:
                known = isinstance(failure, DamagedLogError) or self._logs.may_be_offline(key)
                if not known:  # else a line was logged at the start
                    logger.error(
                        "%s: log could not be opened, replica is offline: %s", key, failure
                    )
                errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            errors[key] = ErrorCode.NONE
            if partition.is_assigned_leader:
                led.append(partition)
                self._isr_metrics.assigned(former_isr, partition.isr)
            else:
                followed.append(partition)
                if leads_already:
                    self._partitions.flusher.forget(partition)
        self._fetchers.forget([partition.topic_partition for partition in led])
        self._fetchers.follow(followed)
        for partition in (*led, *followed):
            if partition.is_leader:
                self._partitions.flush_if_owed(partition)
            self._on_role_taken(partition)

    def _note_role(self, partition: Partition, leader: int, leader_epoch: int) -> None:
        """Note a role as the state-change log shows it, with the leader before."""
        data = {
            "leader": partition.assigned_leader,
            "leader_epoch": partition.leader_epoch,
            "offset": partition.log.log_end_offset,
            "high_watermark": partition.log.high_watermark,
            "isr": list(partition.isr),
            "version": partition.partition_epoch,
            "adding": list(partition.adding),
            "removing": list(partition.removing),
            "previous": leader,
            "previous_epoch": leader_epoch,
        }
        event = "role.leads" if partition.is_assigned_leader else "role.follows"
        self._note(Note(event, subjects.partition(*partition.topic_partition), "assigned", data))

    def _known_isr(self, key: TopicPartition, topic_id: Uuid) -> Sequence[int]:
        """Return the ISR that the controller last sent to all brokers; none of a new partition."""
        view = self._cluster.topic(key.topic)
        if view is None or view.topic_id != topic_id or key.partition >= len(view.partitions):
            return ()
        return view.partitions[key.partition].isr

    def _options_of(self, topic: str) -> TopicOptions | None:
        """Return a topic's options, None if its configs are unreadable or invalid."""
        return self._configs.options_of(topic) if self._configs.knows(topic) else None

    def _partition(
        self,
        key: TopicPartition,
        topic_id: Uuid,
        state: LeaderAndIsrPartitionState,
        options: TopicOptions,
        broker_epoch: int,
    ) -> Partition:
        """Return the partition that a role is for; raise if the role must be rejected."""
        partition = self._partitions.get(key)
        if partition is not None:
            if topic_id != ZERO_UUID and partition.topic_id != topic_id:
                if partition.assigned_leader != NO_LEADER:
                    raise RequestError(ErrorCode.INCONSISTENT_TOPIC_ID)
                self.drop(key)
                partition = None
            elif state.leader_epoch <= partition.leader_epoch:
                if state.leader_epoch == partition.leader_epoch and self._silence.role_assigned(
                    partition, broker_epoch
                ):
                    self._on_role_shown(partition)  # a controller that saw no end of its session
                if self._log_failures.resigns(partition):
                    raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR)
                raise RequestError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if self._broker_id not in state.replicas:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition is None:
            log = self._logs.open(key, topic_id, options, self._now_ms(), new=state.is_new)
            partition = Partition(key, topic_id, log, self._broker_id, self._leader_context)
            self._partitions[key] = partition
            if self._silence.is_silent:
                partition.mute()
        return partition

    def drop(self, key: TopicPartition) -> None:
        """Stop hosting a partition, and notify what waits for it."""
        partition = self._partitions.pop(key, None)
        if partition is None:
            return
        partition.resign()
        self._silence.dropped(key)
        self._relocations.cancel(key)
        self._partitions.flusher.forget(partition)
        self._on_role_shown(partition)

    async def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """Stop replicas, and delete them if requested; return the error code of each."""
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                errors[key] = await self._stop(key, state)
        self._fetchers.end_idle()
        return errors

    async def _stop(self, key: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        partition = self._partitions.get(key)
        if (
            partition is not None
            and state.leader_epoch not in (EPOCH_DURING_DELETION, NO_EPOCH)
            and state.leader_epoch < partition.leader_epoch
        ):
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition is None and self._logs.may_be_offline(key):
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._fetchers.forget([key])
        if partition is not None:
            cause = "deleted" if state.delete_partition else "assigned"
            epoch = {"leader_epoch": partition.leader_epoch}
            self._note(Note("role.stopped", subjects.partition(*key), cause, epoch))
        self.drop(key)
        if state.delete_partition:
            await self._compaction.stop_for(key)
            options = self._configs.options_of(key.topic) or self._configs.topic_options({})
            try:
                self._logs.delete(key, options.file_delete_delay_ms)
            except StorageError as failure:
                self._log_failures.of_partition(key, failure)
                return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE


def _role(state: LeaderAndIsrPartitionState) -> Role:
    return Role(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        state.partition_epoch,
        tuple(state.adding_replicas),
        tuple(state.removing_replicas),
        state.leader_recovery_state == 1,
    )

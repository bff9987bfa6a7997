"""The partitions that this broker holds: taken over from the controller, led, followed, stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.config.topic import TopicOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DamagedLogError, RequestError, StorageError
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.replication.neighbours import Neighbours
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger("barnabas.replicas")

EPOCH_DURING_DELETION = -2
NO_EPOCH = -1

ROLES_AT_ONCE = 50
TURN_S_MAX = 0.1
"""Where logs have to be made, others are served in between; but not after each few, since what
they ask is of little use before the roles are taken.
"""


class Replicas:
    """Makes partitions what the controller says, and drops those that it wants no more."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._neighbours = Neighbours(
            broker.timer.now_ms,
            lambda other: other in broker.cluster.brokers,
            lambda: broker.options.replica_lag_time_max_ms,
        )
        self._names: dict[Uuid, str] = {}

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic that has roles here, of which its metadata is still to come.

        Those who were told of them at the same time ask at once.
        """
        return self._names.get(topic_id)

    def metadata_came(self, topic_id: Uuid) -> None:
        """From now on the cluster's view knows the topic, or that it is gone."""
        self._names.pop(topic_id, None)

    async def take_roles(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        """Take over roles; return what became of each."""
        broker = self._broker
        unread = [
            topic.topic_name
            for topic in request.topic_states
            if not broker.configs.knows(topic.topic_name)
        ]
        await broker.learn_topic_configs(unread)
        errors: dict[TopicPartition, ErrorCode] = {}
        loop = asyncio.get_running_loop()
        began = loop.time()
        for topic in request.topic_states:
            for start in range(0, len(topic.partition_states), ROLES_AT_ONCE):
                if loop.time() - began > TURN_S_MAX:
                    await asyncio.sleep(0)  # others have waited while logs were opened
                    began = loop.time()
                states = topic.partition_states[start : start + ROLES_AT_ONCE]
                self._take(topic.topic_name, topic.topic_id, states, request.broker_epoch, errors)
        broker.fetchers.end_idle()
        return errors

    def _take(
        self,
        topic: str,
        topic_id: Uuid,
        states: Sequence[LeaderAndIsrPartitionState],
        life: int,
        errors: dict[TopicPartition, ErrorCode],
    ) -> None:
        """Take over roles of one topic between two turns of the loop, with all that follows.

        They were told to the `life` of this broker that began with that epoch.
        """
        broker = self._broker
        options = self._options_of(topic)
        if options is None:
            # Not by others: they would delete what these may be meant to keep.
            for state in states:
                errors[TopicPartition(topic, state.partition_index)] = ErrorCode.KAFKA_STORAGE_ERROR
            return
        if topic_id != ZERO_UUID and broker.cluster.topic_by_id(topic_id) is None:
            self._names[topic_id] = topic
        led: list[Partition] = []
        followed: list[Partition] = []
        for state in states:
            key = TopicPartition(topic, state.partition_index)
            try:
                partition = self._partition(key, topic_id, state, options, life)
                leads_already = partition.is_assigned_leader
                partition.assume(_role(state))
                broker.silence.role_told(partition, life)
            except RequestError as refusal:
                errors[key] = refusal.code
                continue
            except StorageError as failure:
                known = isinstance(failure, DamagedLogError) or broker.logs.may_be_offline(key)
                if not known:  # else a line was logged at the start
                    logger.error("cannot open the log of %s: %s", key, failure)
                errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            errors[key] = ErrorCode.NONE
            if partition.is_assigned_leader:
                led.append(partition)
            else:
                followed.append(partition)
                if leads_already:
                    broker.partitions.flusher.forget(partition)
        broker.fetchers.forget([partition.topic_partition for partition in led])
        broker.fetchers.follow(followed)
        for partition in (*led, *followed):
            if partition.is_leader:
                broker.partitions.flush_if_owed(partition)
            broker.role_taken(partition)

    def _options_of(self, topic: str) -> TopicOptions | None:
        """Return a topic's options, None if what is set for it cannot be read or cannot act."""
        configs = self._broker.configs
        if not configs.knows(topic):
            return None
        return configs.options_of(topic)

    def _partition(
        self,
        key: TopicPartition,
        topic_id: Uuid,
        state: LeaderAndIsrPartitionState,
        options: TopicOptions,
        life: int,
    ) -> Partition:
        """Return the partition that a role is for; raise what speaks against taking it."""
        broker = self._broker
        partition = broker.partitions.get(key)
        if partition is not None:
            if topic_id != ZERO_UUID and partition.topic_id != topic_id:
                if partition.assigned_leader != -1:
                    raise RequestError(ErrorCode.INCONSISTENT_TOPIC_ID)
                self.drop(key)
                partition = None
            elif state.leader_epoch <= partition.leader_epoch:
                if state.leader_epoch == partition.leader_epoch and broker.silence.role_told(
                    partition, life
                ):
                    broker.role_shown(partition)  # a controller that saw no end of its session
                if broker.log_failures.hands_on(partition):
                    raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR)
                raise RequestError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if broker.broker_id not in state.replicas:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition is None:
            log = broker.logs.open(key, topic_id, options, broker.now_ms(), new=state.is_new)
            partition = Partition(key, topic_id, log, broker.broker_id, self._neighbours)
            broker.partitions[key] = partition
            if broker.silence.is_silent:
                partition.mute()
        return partition

    def drop(self, key: TopicPartition) -> None:
        """Host a partition no longer: who waits for it is told."""
        broker = self._broker
        partition = broker.partitions.pop(key, None)
        if partition is None:
            return
        partition.resign()
        broker.silence.dropped(key)
        broker.relocations.cancel(key)
        broker.partitions.flusher.forget(partition)
        for host in (broker.groups, broker.transactions):
            if host.topic == key.topic:
                host.resign(key.partition)
        broker.partitions.role_changed(key)

    async def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """Stop replicas, and delete those that are to be; return what became of each."""
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                errors[key] = await self._stop(key, state)
        self._broker.fetchers.end_idle()
        return errors

    async def _stop(self, key: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        broker = self._broker
        partition = broker.partitions.get(key)
        if (
            partition is not None
            and state.leader_epoch not in (EPOCH_DURING_DELETION, NO_EPOCH)
            and state.leader_epoch < partition.leader_epoch
        ):
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition is None and broker.logs.may_be_offline(key):
            return ErrorCode.KAFKA_STORAGE_ERROR
        broker.fetchers.forget([key])
        self.drop(key)
        if state.delete_partition:
            await broker.cleaning.stop_for(key)
            options = broker.configs.options_of(key.topic) or broker.configs.topic_options({})
            try:
                broker.logs.delete(key, options.file_delete_delay_ms)
            except StorageError as failure:
                broker.log_failures.of_partition(key, failure)
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

"""Our consumer as `Consumer` needs it: does not wait for a cluster, returns single records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import KafkaTimeoutError
from barnabas.compat.confluent_kafka.config import Settings
from barnabas.compat.confluent_kafka.events import Events
from barnabas.compat.confluent_kafka.failures import exception_of
from barnabas.compat.confluent_kafka.notices import Notices
from barnabas.compat.confluent_kafka.partitions import OFFSET_INVALID
from barnabas.consumer.core import ConsumerCore
from barnabas.consumer.group.member import GroupMember
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Assigned, Mode
from barnabas.kernels import ConsumerRecord
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.isolation import IsolationLevel
from barnabas.structs import OffsetAndMetadata


class RecordReader(KafkaConsumer):
    """A consumer that may be created before its cluster."""

    def __init__(self, settings: Settings, events: Events, options: dict[str, Any]) -> None:
        self._settings = settings
        self._events = events
        super().__init__(**options)

    async def _start(self, core: ConsumerCore) -> None:
        def statistics() -> dict[str, Any]:
            numbers = core.metrics()["consumer-fetch-manager-metrics"]
            return {"type": "consumer", "rxmsgs": int(numbers["records-consumed-total"])}

        Notices(self._settings, self._events, core.client, statistics, self._partition_statistics)
        await core.begin()

    def _partition_statistics(self, partition: TopicPartition) -> dict[str, Any]:
        state = self.state(partition)
        if state is None:
            return {"consumer_lag": -1}
        committed = self._options.isolation_level == IsolationLevel.READ_COMMITTED
        lag = state.lag(committed=committed)
        return {
            "lo_offset": _known(state.log_start_offset),
            "hi_offset": _known(state.high_watermark),
            "ls_offset": _known(state.last_stable_offset),
            "app_offset": _known(state.position),
            "committed_offset": _known(None if state.committed is None else state.committed.offset),
            "consumer_lag": -1 if lag is None else lag,
        }

    @property
    def client(self) -> ClusterClient:
        """The connections to the cluster."""
        return self._core.client

    @property
    def by_group(self) -> bool:
        """Whether a group assigns partitions."""
        return self._subscription.by_group

    @property
    def mode(self) -> Mode:
        """How partitions are chosen."""
        return self._subscription.mode

    @property
    def is_unpolled(self) -> bool:
        """Whether the consumer has left its group since it was not polled; a poll rejoins."""
        return isinstance(self._core.member, GroupMember) and self._core.member.is_unpolled

    @property
    def states(self) -> list[Assigned]:
        """The assigned partitions, with positions."""
        return list(self._subscription.assigned.values())

    def state(self, partition: TopicPartition) -> Assigned | None:
        """Return an assigned partition."""
        return self._subscription.assigned.get(partition)

    def missing_topics(self) -> list[str]:
        """Return the subscribed topics that do not exist."""
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster = self.client.cluster
        return [name for name in self._subscription.topics if cluster.error_of(name) is unknown]

    def take_one(self, timeout_ms: float) -> ConsumerRecord | None:
        """Return the next record, waiting for it."""
        self._iteration_ms = timeout_ms
        return next(iter(self), None)

    def committed_of(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed."""
        return self._await(self._core.committed(partitions, timeout_ms))

    def restart(self, partition: TopicPartition, policy: ResetPolicy) -> None:
        """Continue at an end of a partition."""
        self._do(self._reset(partition, policy))

    async def _reset(self, partition: TopicPartition, policy: ResetPolicy) -> None:
        self._core.reset([partition], policy)

    def call(self, work: Coroutine[Any, Any, Any], timeout_s: float | None) -> Any:
        """Run a coroutine on the loop, and raise KafkaException for what it raises."""

        async def limited() -> Any:
            try:
                async with asyncio.timeout(timeout_s):
                    return await work
            except TimeoutError as failure:
                raise KafkaTimeoutError(f"not completed within {timeout_s:g} s") from failure

        return self.guard(lambda: self._do(limited()))

    @staticmethod
    def guard(function: Callable[[], Any]) -> Any:
        """Call a function, and raise KafkaException for what it raises."""
        try:
            return function()
        except BarnabasError as failure:
            raise exception_of(failure) from failure


def _known(offset: int | None) -> int:
    return OFFSET_INVALID if offset is None else offset

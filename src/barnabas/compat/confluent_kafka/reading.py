"""Our consumer as `Consumer` needs it: it does not wait for a cluster, and gives single records."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import KafkaTimeoutError
from barnabas.compat.confluent_kafka.config import Settings
from barnabas.compat.confluent_kafka.events import Events
from barnabas.compat.confluent_kafka.failures import exception_of
from barnabas.compat.confluent_kafka.notices import Notices
from barnabas.consumer.core import ConsumerCore
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Assigned, Mode
from barnabas.kernels import ConsumerRecord
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata


class RecordReader(KafkaConsumer):
    """A consumer that may be created before its cluster."""

    def __init__(self, settings: Settings, events: Events, options: dict[str, Any]) -> None:
        self._settings = settings
        self._events = events
        self._notices: Notices | None = None
        super().__init__(**options)

    async def _start(self, core: ConsumerCore) -> None:
        self._notices = Notices(self._settings, self._events, core.client, self._statistics)
        await core.begin()

    def _statistics(self) -> dict[str, Any]:
        return {"type": "consumer", "rxmsgs": self._core.buffer.records, "topics": {}}

    @property
    def client(self) -> ClusterClient:
        """The connections to the cluster."""
        return self._core.client

    @property
    def by_group(self) -> bool:
        """Whether a group assigns partitions."""
        return self._subscription.by_group

    @property
    def is_assigned(self) -> bool:
        """Whether partitions were assigned by the program."""
        return self._subscription.mode is Mode.ASSIGNED

    @property
    def states(self) -> list[Assigned]:
        """The assigned partitions, with positions."""
        return list(self._subscription.assigned.values())

    def state(self, partition: TopicPartition) -> Assigned | None:
        """Return an assigned partition."""
        return self._subscription.assigned.get(partition)

    def missing_topics(self) -> list[str]:
        """Return the subscribed topics that do not exist."""
        from barnabas.model.error_codes import ErrorCode

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
            import asyncio

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

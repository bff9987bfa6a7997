"""The topics that a producer writes to: finding their partitions, and forgetting idle ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import KafkaTimeoutError, NetworkError
from barnabas.client.retry import Backoff
from barnabas.metadata.topic_names import illegal_name
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.request_errors import request_error
from barnabas.producer.accumulator import Accumulator


class Topics:
    """Keeps the topics of the accumulator and of the cluster client in step."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        accumulator: Accumulator,
        backoff: Backoff,
        busy: Callable[[str], bool],
        *,
        auto_create: bool,
        idle_ms_max: float,
    ) -> None:
        """`busy` returns whether something waits for a topic."""
        self._client = cluster_client
        self._accumulator = accumulator
        self._backoff = backoff
        self._busy = busy
        self._auto_create = auto_create
        self._idle_ms_max = idle_ms_max
        self._used_ms: dict[str, float] = {}
        self._generation = -1

    def track(self) -> None:
        """Have these topics refreshed in the background."""
        self._client.track(self._wanted, auto_create=self._auto_create)

    def use(self, topic: str, now_ms: float) -> None:
        """Record that a topic is written to."""
        self._used_ms[topic] = now_ms

    async def know(self, topic: str, timeout_ms: float) -> int:
        """Return a topic's number of partitions, retrying until it is known or time is up."""
        check_topic(topic)
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        self.use(topic, begun_s * 1000)
        self._generation = -1
        failures = 0
        last: BarnabasError | None = None
        try:
            async with asyncio.timeout_at(begun_s + timeout_ms / 1000):
                while True:
                    try:
                        count, last = await self._ask(topic, again=failures > 0)
                        if count:
                            return count
                    except NetworkError as failure:
                        last = failure
                    failures += 1
                    await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)
        except TimeoutError:
            why = f": {last}" if last is not None else ""
            raise KafkaTimeoutError(
                f"the partitions of topic {topic!r} could not be found within "
                f"max.block.ms={timeout_ms:g}{why}"
            ) from last

    async def _ask(self, topic: str, *, again: bool) -> tuple[int, BarnabasError | None]:
        """Ask once; return the number of partitions, or 0 and the error."""
        cluster = self._client.cluster
        if again or cluster.partitions_for(topic) is None:
            await self._client.refresh([topic], auto_create=self._auto_create)
        self.learn()
        count = self._accumulator.partition_count(topic)
        code = cluster.error_of(topic)
        if count or code is ErrorCode.NONE:
            return count, None
        failure = request_error(code, f"topic {topic!r}: {code.meaning}")
        if not code.retriable:
            raise failure
        return 0, failure

    def learn(self) -> None:
        """Pass the partition counts of the cluster view to the accumulator."""
        cluster = self._client.cluster
        if self._generation == cluster.generation:
            return
        self._generation = cluster.generation
        for topic in self._used_ms:
            found = cluster.partitions_for(topic)
            if found is None:
                continue
            if self._accumulator.partition_count(topic) != len(found):
                self._accumulator.add_topic(topic, len(found))
            self._accumulator.unstick(topic)  # its partition may have lost its leader

    def _wanted(self) -> list[str]:
        """Return the topics that were recently written to, and drop the others."""
        now_ms = asyncio.get_running_loop().time() * 1000
        for topic, used_ms in list(self._used_ms.items()):
            if now_ms - used_ms > self._idle_ms_max and not self._busy(topic):
                self._accumulator.forget_topic(topic)
                del self._used_ms[topic]
        return list(self._used_ms)


def check_topic(topic: object) -> None:
    """Raise unless this can be the name of a topic."""
    if not isinstance(topic, str):
        raise TypeError(f"topic {topic!r} must be a str, not {type(topic).__name__}")
    reason = illegal_name(topic)
    if reason is not None:
        raise InvalidValueError(reason)

"""What kafka_exporter shows of a whole cluster, from any one broker.

Topics, leaders and ISRs are in every broker's metadata. The offsets are asked from the leaders, and
groups with their commits from the coordinators: from all brokers at once, with a timeout. What one
of them does not answer is missing, and the reading says whose answer that is.

As kafka_exporter has it, the current offset is the high watermark, the oldest one the log start,
and the lag their difference to what was committed, which may be negative for a while. Unlike there,
partitions without a commit are left out: a -1 in a sum of lags would be wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from barnabas.metadata.cluster_view import ClusterView, PartitionView
from barnabas.metrics.catalogue import cluster as of_cluster
from barnabas.metrics.catalogue import groups as of_groups
from barnabas.metrics.catalogue.exposing import BROKER_ANSWERED
from barnabas.metrics.metric import Metric, label_text
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import EARLIEST, LATEST
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from barnabas.wire.schema import Message

TIMEOUT_S = 5.0
"""How long the brokers may take together; Prometheus waits for 10 s by default."""
PARTITIONS_PER_REQUEST = 500
"""So many are looked up, or decoded, before a loop serves others."""
GROUPS_PER_REQUEST = 10
CONSUMER_REPLICA = -1

Ask = Callable[[int, Message, int], Awaitable[Any]]
"""Sends a request to a broker, with a timeout in milliseconds; `Peers.ask`."""
Key = tuple[str, int]
Series = Iterable[tuple[str, float]]


class ClusterReading:
    """What the brokers have answered; a collector of the metrics that are made of it."""

    def __init__(self, cluster: ClusterView) -> None:
        self._topics = list(cluster.topics)
        self._brokers = [
            (str(view.broker_id), next(iter(view.endpoints.values()), (None, 0)))
            for view in cluster.brokers.values()
        ]
        self.missing: dict[int, str | None] = dict.fromkeys(cluster.brokers)
        """Why the answer of a broker is missing, or incomplete; None if it is not."""
        self.ends: dict[Key, int] = {}
        self.starts: dict[Key, int] = {}
        self.commits: dict[str, dict[Key, int]] = {}
        """Committed offsets, by group."""
        self.members: dict[str, int] = {}
        self.led: dict[int, list[Key]] = {}
        """The partitions that each broker leads."""
        self._views: list[tuple[Key, PartitionView, str]] = []
        """Every partition, with the text of its labels."""

    async def look(self) -> None:
        """Read the topics of this broker's metadata, and let the loop go on now and then."""
        pair = of_cluster.LEADER.labels
        for topic in self._topics:
            for number, view in enumerate(topic.partitions):
                key = topic.name, number
                self.led.setdefault(view.leader, []).append(key)
                self._views.append((key, view, label_text(pair, (topic.name, str(number)))))
                if len(self._views) % PARTITIONS_PER_REQUEST == 0:
                    await asyncio.sleep(0)

    def comments(self) -> list[str]:
        """Return a line for each broker whose answer is missing."""
        return [
            f"broker {broker_id} is missing: {why}"
            for broker_id, why in sorted(self.missing.items())
            if why is not None
        ]

    def collect(self) -> Iterator[tuple[Metric, Series]]:
        """Yield all metrics; the text of a series is built only when it is asked for."""
        yield (
            BROKER_ANSWERED,
            [(f'broker="{each}"', why is None) for each, why in self.missing.items()],
        )
        yield of_cluster.BROKERS, [("", len(self._brokers))]
        yield of_cluster.BROKER_INFO, self._broker_infos()
        yield (
            of_cluster.TOPIC_PARTITIONS,
            (
                (label_text(("topic",), (topic.name,)), len(topic.partitions))
                for topic in self._topics
            ),
        )
        yield from self._partitions()
        yield from self._groups()

    def _broker_infos(self) -> Series:
        for broker_id, (host, port) in self._brokers:
            address = f"{host or '127.0.0.1'}:{port}"
            yield label_text(of_cluster.BROKER_INFO.labels, (broker_id, address)), 1

    def _partitions(self) -> Iterator[tuple[Metric, Series]]:
        views = self._views
        for metric, offsets in (
            (of_cluster.CURRENT_OFFSET, self.ends),
            (of_cluster.OLDEST_OFFSET, self.starts),
        ):
            yield metric, ((text, offsets[key]) for key, _, text in views if key in offsets)
        yield of_cluster.LEADER, ((text, view.leader) for _, view, text in views)
        yield of_cluster.REPLICAS, ((text, len(view.replicas)) for _, view, text in views)
        yield of_cluster.IN_SYNC, ((text, len(view.isr)) for _, view, text in views)
        yield (
            of_cluster.UNDER_REPLICATED,
            ((text, len(view.isr) < len(view.replicas)) for _, view, text in views),
        )
        yield (
            of_cluster.LEADER_IS_PREFERRED,
            ((text, view.leader == view.replicas[0]) for _, view, text in views if view.replicas),
        )

    def _groups(self) -> Iterator[tuple[Metric, Series]]:
        yield (
            of_groups.MEMBERS,
            (
                (label_text(("consumergroup",), (group,)), count)
                for group, count in self.members.items()
            ),
        )
        yield of_groups.CURRENT_OFFSET, self._commits(lambda key, offset: offset)
        yield of_groups.LAG, self._commits(self._lag)
        yield of_groups.CURRENT_OFFSET_SUM, self._sums(lambda key, offset: offset)
        yield of_groups.LAG_SUM, self._sums(self._lag)

    def _lag(self, key: Key, offset: int) -> int | None:
        end = self.ends.get(key)
        return None if end is None else end - offset

    def _commits(self, value: Callable[[Key, int], int | None]) -> Series:
        for group, commits in self.commits.items():
            for key, offset in commits.items():
                number = value(key, offset)
                if number is not None:
                    labels = group, key[0], str(key[1])
                    yield label_text(of_groups.LAG.labels, labels), number

    def _sums(self, value: Callable[[Key, int], int | None]) -> Series:
        for group, commits in self.commits.items():
            sums: dict[str, int] = {}
            for key, offset in commits.items():
                number = value(key, offset)
                if number is not None:
                    sums[key[0]] = sums.get(key[0], 0) + number
            for topic, total in sums.items():
                yield label_text(of_groups.LAG_SUM.labels, (group, topic)), total


class ClusterExporter:
    """Asks the brokers of a cluster."""

    def __init__(self, cluster: ClusterView, ask: Ask) -> None:
        self._cluster = cluster
        self._ask = ask

    async def read(self) -> ClusterReading:
        """Return what the brokers answer in time."""
        reading = ClusterReading(self._cluster)
        await reading.look()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + TIMEOUT_S
        tasks = {
            loop.create_task(self._read_broker(each, reading, deadline_s)): each
            for each in reading.missing
        }
        if not tasks:
            return reading
        try:
            _, late = await asyncio.wait(tasks, timeout=TIMEOUT_S + 0.5)
        finally:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in late:
            reading.missing[tasks[task]] = f"no answer in {TIMEOUT_S:g} s"
        return reading

    async def _read_broker(
        self, broker_id: int, reading: ClusterReading, deadline_s: float
    ) -> None:
        loop = asyncio.get_running_loop()

        async def ask(request: Message) -> Any:
            left_ms = max(int((deadline_s - loop.time()) * 1000), 1)
            return await self._ask(broker_id, request, left_ms)

        led = reading.led.get(broker_id, [])
        try:
            failures = [
                await self._offsets(ask, led, LATEST, reading.ends),
                await self._offsets(ask, led, EARLIEST, reading.starts),
                await self._read_groups(ask, reading),
            ]
        except (BarnabasError, OSError) as failure:
            reading.missing[broker_id] = str(failure) or type(failure).__name__
            return
        why = next((each for each in failures if each is not None), None)
        if why is not None:
            reading.missing[broker_id] = why

    async def _offsets(
        self,
        ask: Callable[[Message], Awaitable[Any]],
        led: list[Key],
        timestamp: int,
        found: dict[Key, int],
    ) -> str | None:
        """Look up an end of each partition; return why some are unknown."""
        why = None
        for start in range(0, len(led), PARTITIONS_PER_REQUEST):
            topics: dict[str, ListOffsetsTopic] = {}
            for name, number in led[start : start + PARTITIONS_PER_REQUEST]:
                topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                    ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                )
            request = ListOffsetsRequest(replica_id=CONSUMER_REPLICA, topics=list(topics.values()))
            response: ListOffsetsResponse = await ask(request)
            for topic in response.topics:
                for each in topic.partitions:
                    if each.error_code:
                        code = ErrorCode.of(each.error_code).name
                        why = f"partition {topic.name}-{each.partition_index}: {code}"
                    else:
                        found[topic.name, each.partition_index] = each.offset
        return why

    async def _read_groups(
        self, ask: Callable[[Message], Awaitable[Any]], reading: ClusterReading
    ) -> str | None:
        listed: ListGroupsResponse = await ask(ListGroupsRequest())
        if listed.error_code:
            return f"groups: {ErrorCode.of(listed.error_code).name}"
        why = None
        groups = listed.groups
        for start in range(0, len(groups), GROUPS_PER_REQUEST):
            some = groups[start : start + GROUPS_PER_REQUEST]
            names = [each.group_id for each in some]
            why = await self._commits(ask, names, reading) or why
            newer = [each.group_id for each in some if each.group_type.lower() == "consumer"]
            older = [name for name in names if name not in newer]
            if older:
                described: DescribeGroupsResponse = await ask(DescribeGroupsRequest(groups=older))
                for group in described.groups:
                    reading.members[group.group_id] = len(group.members)
            if newer:
                request = ConsumerGroupDescribeRequest(group_ids=newer)
                found: ConsumerGroupDescribeResponse = await ask(request)
                for each in found.groups:
                    reading.members[each.group_id] = len(each.members)
        return why

    async def _commits(
        self,
        ask: Callable[[Message], Awaitable[Any]],
        names: list[str],
        reading: ClusterReading,
    ) -> str | None:
        why = None
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        response: OffsetFetchResponse = await ask(OffsetFetchRequest(groups=groups))
        for group in response.groups:
            if group.error_code:
                why = f"group {group.group_id}: {ErrorCode.of(group.error_code).name}"
                continue
            commits = reading.commits.setdefault(group.group_id, {})
            for topic in group.topics:
                name = topic.name
                if not name:  # since version 10 there are ids
                    view = self._cluster.topic_by_id(topic.topic_id)
                    if view is None:
                        continue  # deleted meanwhile
                    name = view.name
                for each in topic.partitions:
                    if not each.error_code and each.committed_offset >= 0:
                        commits[name, each.partition_index] = each.committed_offset
        return why

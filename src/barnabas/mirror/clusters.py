"""The source and the target cluster: clients, cluster ids, and the ends of the source's logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, TypeVar

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NoBrokersAvailable
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.ids import TopicPartition

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


class SourceLostRecordsError(BarnabasError):
    """The source's log ends before the offset that was copied up to: it is a different log."""


class Clusters(NamedTuple):
    """Both clusters and their ids."""

    source: ClusterClient
    target: ClusterClient
    source_id: str
    target_id: str


@asynccontextmanager
async def open_clusters(
    source: ClientOptions, target: ClientOptions, topics: TopicFilter
) -> AsyncIterator[Clusters]:
    """Connect to both; raise NoBrokersAvailable, naming the option, or InvalidValueError."""
    async with AsyncExitStack() as stack:
        source_client = await _connect(stack, source, "--source")
        target_client = await _connect(stack, target, "--target")
        ids = _cluster_ids(source_client, target_client, topics)
        yield Clusters(source_client, target_client, *ids)


async def _connect(stack: AsyncExitStack, options: ClientOptions, flag: str) -> ClusterClient:
    try:
        client = await stack.enter_async_context(AIOKafkaAdminClient(**options.admin))
    except NoBrokersAvailable as failure:
        address = options.given["bootstrap.servers"]
        raise NoBrokersAvailable(f"{flag} {address}: no broker responds ({failure})") from failure
    return client.client


def _cluster_ids(
    source: ClusterClient, target: ClusterClient, topics: TopicFilter
) -> tuple[str, str]:
    """Return the ids of both clusters; raise if the mirror would write into what it reads."""
    source_id, target_id = source.cluster.cluster_id, target.cluster.cluster_id
    if source_id is None or target_id is None:
        side = "source" if source_id is None else "target"
        raise InvalidValueError(
            f"the {side} has no cluster id: its brokers must run Kafka 0.10.1 or later"
        )
    if source_id == target_id and not topics.prefix:
        raise InvalidValueError(
            f"source and target are the same cluster ({source_id}): "
            "a copy within one cluster needs --prefix"
        )
    return source_id, target_id


async def start_client(stack: AsyncExitStack, client: Client) -> Client:
    """Start a client that is stopped when the stack is left."""
    await client.start()
    stack.push_async_callback(_stop, client)
    return client


async def _stop(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    try:
        await client.stop()
    except BarnabasError:
        # The cluster is unreachable. A transaction left open there is ended by the next session,
        # or by its timeout.
        return


class SourceLogs:
    """Start and end offsets of the source, as consumers with its `isolation.level` see them."""

    def __init__(self, client: ClusterClient, options: ClientOptions) -> None:
        self.client = client
        self._committed = options.consumer["isolation.level"] == "read_committed"

    async def start_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        return await self._offsets(partitions, EARLIEST, committed=False)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset up to which each log can be consumed."""
        return await self._offsets(partitions, LATEST, committed=self._committed)

    async def check_not_truncated(self, positions: dict[TopicPartition, int]) -> None:
        """Raise if a log ends before the offset that it was read up to."""
        ends = await self._offsets(positions, LATEST, committed=False)
        for partition, position in positions.items():
            if position > ends[partition]:
                raise SourceLostRecordsError(
                    f"{partition} was copied up to offset {position}, but now ends at "
                    f"{ends[partition]} on the source: it has lost records. "
                    "To start over, choose another --name and another --prefix"
                )

    async def _offsets(
        self, partitions: Iterable[TopicPartition], spec: int, *, committed: bool
    ) -> dict[TopicPartition, int]:
        specs = dict.fromkeys(partitions, spec)
        if not specs:
            return {}
        found = await list_offsets(self.client, specs, committed=committed)
        return {partition: answer.offset for partition, answer in found.items()}

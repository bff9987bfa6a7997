"""Clients that are open for as long as a session, and the clusters that they find."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, TypeVar

from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NoBrokersAvailable
from barnabas.mirror.clients import Side
from barnabas.mirror.selection import Selection
from barnabas.model.errors import BarnabasError, InvalidValueError

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


class Clusters(NamedTuple):
    """Both clusters and their ids."""

    source: ClusterClient
    target: ClusterClient
    source_id: str
    target_id: str


@asynccontextmanager
async def clusters(source: Side, target: Side, selection: Selection) -> AsyncIterator[Clusters]:
    """Reach both clusters; raise NoBrokersAvailable, which names the side, or InvalidValueError."""
    async with AsyncExitStack() as stack:
        one = await _reached(stack, source, "--source")
        other = await _reached(stack, target, "--target")
        yield Clusters(one, other, *_cluster_ids(one, other, selection))


async def _reached(stack: AsyncExitStack, side: Side, option: str) -> ClusterClient:
    try:
        client = await stack.enter_async_context(AIOKafkaAdminClient(**side.admin))
    except NoBrokersAvailable as failure:
        address = side.options["bootstrap.servers"]
        raise NoBrokersAvailable(f"{option} {address}: no broker answers ({failure})") from failure
    return client.client


def _cluster_ids(
    source: ClusterClient, target: ClusterClient, selection: Selection
) -> tuple[str, str]:
    """Return the ids of both clusters; raise where a mirror would write into what it reads."""
    source_id, target_id = source.cluster.cluster_id, target.cluster.cluster_id
    if source_id is None or target_id is None:
        side = "source" if source_id is None else "target"
        raise InvalidValueError(f"the {side} has no cluster id: its brokers are too old (0.10.1)")
    if source_id == target_id and not selection.prefix:
        raise InvalidValueError(
            f"source and target are the same cluster ({source_id}): "
            "a copy inside of it needs --prefix"
        )
    return source_id, target_id


async def started(stack: AsyncExitStack, client: Client) -> Client:
    """Start a client that is stopped when the stack is left."""
    await client.start()
    stack.push_async_callback(_stop, client)
    return client


async def _stop(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    try:
        await client.stop()
    except BarnabasError:
        # A cluster that cannot be reached cannot be taken leave of; what was open there is ended
        # by the next session, or by the transaction's timeout.
        return

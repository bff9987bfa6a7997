"""Clients that are open for as long as a session, and the clusters that they find."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TypeVar

from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.switchboard import Switchboard
from barnabas.mirror.selection import Selection
from barnabas.model.errors import BarnabasError, InvalidValueError

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


def cluster_ids(source: Switchboard, target: Switchboard, selection: Selection) -> tuple[str, str]:
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

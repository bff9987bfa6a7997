"""Brokers that share a tree in memory, in one process: how tests make them and wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.log.files import Files
from barnabas.metadata.topic_store import NewTopic


def broker(
    store: MemoryStore, folder: Path, number: int, disk: Files | None = None, **options: str
) -> Broker:
    """Return a broker that is quick to notice its neighbours; `a_b="c"` sets a.b=c."""
    given = {
        "broker.id": str(number),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / str(number)),
        "replica.fetch.wait.max.ms": "50",
        "replica.fetch.backoff.ms": "50",
        "controlled.shutdown.retry.backoff.ms": "50",
        "barnabas.diary.enable": "false",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return Broker(BrokerOptions.parse(given), coordination=MemoryCoordination(store), files=disk)


async def alone_with_tree(folder: Path) -> tuple[Broker, MemoryCoordination]:
    """Start a broker without neighbours; return it with a session of somebody else in its tree."""
    store = MemoryStore()
    alone, tree = broker(store, folder, 0), MemoryCoordination(store)
    await alone.start()
    await tree.start()
    return alone, tree


async def create(controller: Broker, topic: NewTopic) -> None:
    """Create a topic, as a client's request does."""
    (made,) = await controller.topics.create([topic], dry_run=False, timeout_ms=60_000)
    assert not isinstance(made, Exception)


async def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that no one event tells."""
    try:
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within a minute: {what}") from None

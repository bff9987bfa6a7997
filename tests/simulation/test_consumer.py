"""A consumer in virtual time, beside a broker whose power fails at random moments.

Every seed is one history: records are written one after another, a consumer reads them while the
broker crashes and comes back. With log.flush.interval.messages=1 nobody is shown a record that a
crash takes back, so the consumer must see every acknowledged record, each once, in order.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.simulation.test_broker_crash import PORT, connect, serve

from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.core import ConsumerCore
from barnabas.consumer.reset import parse_reset
from barnabas.consumer.subscription import Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.simulation.world import World
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

P = TopicPartition("t", 0)
RECORDS = 40


class History:
    """What was acknowledged, and what the consumer saw."""

    def __init__(self) -> None:
        self.written: dict[int, bytes] = {}
        self.seen: list[tuple[int, bytes]] = []


async def write(world: World, history: History) -> None:
    """Write records one by one, each until it is acknowledged."""
    connection: Any = None
    number = 0
    while number < RECORDS:
        try:
            if connection is None:
                connection = await connect("broker")
                topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
                await connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=5000))
            batch = build_batch([(0, None, b"%d" % number)])
            data = PartitionProduceData(index=0, records=bytes(batch))
            request = ProduceRequest(
                acks=-1,
                timeout_ms=5000,
                topic_data=[TopicProduceData(name="t", partition_data=[data])],
            )
            response = await connection.send(request, version=9)
            answer = response.responses[0].partition_responses[0]
            if answer.error_code == ErrorCode.NONE:
                history.written[answer.base_offset] = b"%d" % number
                number += 1
        except BarnabasError:
            connection = None
            await asyncio.sleep(0.05)


async def read(world: World, history: History) -> None:
    """Read until every acknowledged record was seen."""
    options = parse_client_options(
        ConsumerOptions,
        {
            "bootstrap_servers": f"broker:{PORT}",
            "auto_offset_reset": "earliest",
            "request_timeout_ms": 2000,
            "bootstrap_timeout_ms": 60_000,
        },
    )
    subscription = Subscription(parse_reset(options.auto_offset_reset))
    subscription.assign([P])
    core = ConsumerCore(
        options,
        subscription,
        wake=lambda: None,
        random=world.random,
        wall_ms=lambda: asyncio.get_running_loop().time() * 1000,
    )
    await core.start(60_000)
    while (
        len(history.written) < RECORDS
        or not history.seen
        or (history.seen[-1][0] < max(history.written))
    ):
        core.clear_wakes()
        await core.poll_group(1000)
        found = core.buffer.collect(7)
        for records in found.values():
            history.seen += [(record.offset, record.value) for record in records]
        if not found:
            await core.wait(200)
    await core.close()


def run(seed: int) -> tuple[History, str]:
    history = History()
    with World(seed=seed) as world:
        world.start("broker", lambda host: serve(host, **{"log.flush.interval.messages": "1"}))

        async def crashes() -> None:
            for _ in range(3):
                await asyncio.sleep(world.random.uniform(0.05, 1.0))
                world.crash("broker")
                await asyncio.sleep(world.random.uniform(0.0, 0.5))
                world.restart("broker")

        async def scenario() -> None:
            await asyncio.gather(write(world, history), read(world, history), crashes())

        world.run(scenario(), until=600)
        return history, world.trace.digest()


@pytest.mark.parametrize("seed", range(12))
def test_every_acknowledged_record_is_seen_once(seed: int) -> None:
    """Offsets rise one by one, and values are those that were acknowledged."""
    history, _ = run(seed)
    offsets = [offset for offset, _ in history.seen]
    assert offsets == sorted(set(offsets))
    seen = dict(history.seen)
    assert all(seen[offset] == value for offset, value in history.written.items())


def test_one_seed_is_one_run() -> None:
    """The consumer has no clock and no chance of its own."""
    first, digest = run(3)
    second, same = run(3)
    assert digest == same
    assert first.seen == second.seen

"""An idempotent producer: connections break, the broker stops, crashes and comes back.

Every seed is one history. The producer writes numbered records to one partition, as fast as memory
allows, while connections are reset, the network is cut, the broker is paused and loses its power.
Each record that was acknowledged is found exactly once, at the offset that was promised; all are in
the order in which they were sent; and each record has an outcome by its deadline. A record that was
given up may or may not be there, but never twice.

`BARNABAS_CHAOS_SEEDS` asks for more histories than the suite runs.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any

import pytest
from tests.simulation.test_broker_crash import PORT, TOPIC, connect, read_all, serve

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.producer.accumulator import RecordFuture
from barnabas.producer.core import ProducerCore
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import World
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

SEEDS = int(os.environ.get("BARNABAS_CHAOS_SEEDS", "200")) // 5
WORKERS = 4
"""Seeds are run in a few tests, so that several workers share them."""

RECORDS = 300
DELIVERY_MS = 20_000


def producer(world: World, seed: int) -> ProducerCore:
    random = Random(f"{seed}/producer")
    options = parse_client_options(
        ProducerOptions,
        {
            "batch_size": random.choice([100, 300, 1000]),
            "linger_ms": random.choice([0, 5, 50]),
            "request_timeout_ms": random.choice([300, 2000]),
            "delivery_timeout_ms": random.choice([2100, DELIVERY_MS]),
            "compression_type": random.choice(["none", "lz4"]),
        },
    )
    loop = asyncio.get_running_loop()
    cluster_client = ClusterClient(
        [Address("broker", PORT)],
        request_timeout_ms=options.request_timeout_ms,
        connect_timeout_ms=1000,
        random=random,
    )
    return ProducerCore(
        options,
        post=loop.call_soon,
        wait=_unexpected,
        cluster_client=cluster_client,
        random=random,
        clock=world.now_ms,
    )


def _unexpected(*arguments: object) -> None:
    raise AssertionError(arguments)


async def disturb(world: World, stop: asyncio.Event) -> None:
    """Break something every now and then."""
    while not stop.is_set():
        await asyncio.sleep(world.random.uniform(0.02, 0.4))
        deed = world.random.choice(["reset", "reset", "cut", "pause", "crash"])
        if deed == "reset":
            world.network.reset(DRIVER, "broker")
        elif deed == "cut":
            world.network.cut(DRIVER, "broker", both=world.random.random() < 0.5)
            await asyncio.sleep(world.random.uniform(0.1, 3))
            world.network.heal_all()
        elif deed == "pause":
            world.pause("broker")
            await asyncio.sleep(world.random.uniform(0.1, 3))
            world.resume("broker")
        else:
            world.crash("broker")
            await asyncio.sleep(world.random.uniform(0, 1))
            world.restart("broker")


async def send_all(core: ProducerCore, random: Random) -> list[RecordFuture]:
    futures = []
    for number in range(RECORDS):
        future = core.accumulator.append(TOPIC, b"%d" % number, partition=0)
        assert isinstance(future, RecordFuture), "there is room for all"
        futures.append(future)
        if random.random() < 0.3:
            await asyncio.sleep(random.uniform(0, 0.05))
    return futures


def run_history(seed: int) -> tuple[int, int, str]:
    """Live through one history; return what was written, what was given up, and its digest."""
    outcome: list[int] = []

    async def scenario(world: World) -> None:
        connection = await connect("broker")
        create = CreateTopicsRequest(
            topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]
        )
        await connection.send(create, version=7, timeout_ms=5000)
        connection.close()
        core = producer(world, seed)
        await core.start(30_000)
        await core.topics.know(TOPIC, 30_000)
        stop = asyncio.Event()
        disturber = asyncio.ensure_future(disturb(world, stop))
        futures: list[Any] = await send_all(core, world.random)
        began = asyncio.get_running_loop().time()
        await core.flush()
        waited_ms = (asyncio.get_running_loop().time() - began) * 1000
        assert waited_ms < DELIVERY_MS + 3000
        stop.set()
        await disturber
        await core.close(5000)
        found = await read_all(0)
        written = [int(value) for _, value in sorted(found.items())]
        assert written == sorted(set(written)), "out of order, or twice"
        acknowledged = [future for future in futures if future.succeeded()]
        for number, future in enumerate(futures):
            assert future.is_done
            if future.succeeded() and future.value.offset >= 0:
                assert found.get(future.value.offset) == b"%d" % number
            elif future.succeeded():
                assert number in written
        outcome.extend((len(acknowledged), RECORDS - len(acknowledged)))

    with World(seed) as world:
        world.start("broker", lambda host: serve(host, **{"log.flush.interval.messages": "1"}))
        world.run(scenario(world), until=600)
        return outcome[0], outcome[1], world.trace.digest()


@pytest.mark.parametrize("worker", range(WORKERS))
def test_acknowledged_records_are_there_once_and_in_order(worker: int) -> None:
    written = given_up = 0
    for seed in range(worker, SEEDS, WORKERS):
        try:
            history = run_history(seed)
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
        written += history[0]
        given_up += history[1]
    assert written > given_up > 0


def test_one_seed_replays_one_run() -> None:
    assert run_history(3) == run_history(3)

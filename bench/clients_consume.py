"""Consumers side by side: records per second and CPU seconds per million, against one broker.

    python -m bench.clients_consume [--records N] [--value BYTES] [--rounds N]

The broker runs in a process of its own, and so does each reader, one after another, in rounds, so
that a machine that drifts drifts for all. A reader is timed from its first record to its last.
Ratios are medians over the rounds, against confluent-kafka's consume() of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

BATCH = 500


class Measured:
    """Counts records from the first on."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.count = 0
        self.begun: float | None = None
        self.cpu = 0.0

    def add(self, count: int) -> bool:
        """Count; tell whether that was all."""
        self.left -= count
        if self.begun is None:
            if count:
                self.begun, self.cpu = time.perf_counter(), time.process_time()
        else:
            self.count += count
        return self.left <= 0

    def result(self) -> dict[str, float]:
        assert self.begun is not None
        elapsed, cpu = time.perf_counter() - self.begun, time.process_time() - self.cpu
        return {"rate": self.count / elapsed, "cpu": cpu / self.count * 1e6}


def barnabas_poll(bootstrap: str, total: int) -> dict[str, float]:
    from barnabas.blocking.consumer import KafkaConsumer
    from barnabas.model.ids import TopicPartition

    with KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("bench", 0)])
        measured = Measured(total)
        while not measured.add(sum(map(len, consumer.poll(1000, BATCH).values()))):
            pass
        return measured.result()


def barnabas_iteration(bootstrap: str, total: int) -> dict[str, float]:
    from barnabas.blocking.consumer import KafkaConsumer
    from barnabas.model.ids import TopicPartition

    with KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("bench", 0)])
        return _iterated(iter(consumer), total)


def barnabas_arrow(bootstrap: str, total: int) -> dict[str, float]:
    import pyarrow  # noqa: F401  # not part of what is measured

    from barnabas.blocking.consumer import KafkaConsumer
    from barnabas.model.ids import TopicPartition

    with KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("bench", 0)])
        measured = Measured(total)
        while not measured.add(consumer.poll_arrow(1000).num_rows):
            pass
        return measured.result()


def barnabas_getmany(bootstrap: str, total: int) -> dict[str, float]:
    import asyncio

    import uvloop

    from barnabas.aio.consumer import AIOKafkaConsumer
    from barnabas.model.ids import TopicPartition

    async def main() -> dict[str, float]:
        made = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        async with made as consumer:
            consumer.assign([TopicPartition("bench", 0)])
            return await _got(consumer, total)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def aiokafka_getmany(bootstrap: str, total: int) -> dict[str, float]:
    import asyncio

    import uvloop
    from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]

    async def main() -> dict[str, float]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition("bench", 0)])
            return await _got(consumer, total)
        finally:
            await consumer.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


async def _got(consumer: object, total: int) -> dict[str, float]:
    measured = Measured(total)
    getmany: Callable[..., object] = consumer.getmany  # type: ignore[attr-defined]
    while True:
        found = await getmany(timeout_ms=1000, max_records=BATCH)  # type: ignore[misc]
        if measured.add(sum(map(len, found.values()))):
            return measured.result()


def kafka_python_poll(bootstrap: str, total: int) -> dict[str, float]:
    from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped]

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition("bench", 0)])
        measured = Measured(total)
        while not measured.add(sum(map(len, consumer.poll(1000, BATCH).values()))):
            pass
        return measured.result()
    finally:
        consumer.close()


def confluent_consume(bootstrap: str, total: int) -> dict[str, float]:
    consumer = _confluent(bootstrap)
    measured = Measured(total)
    while not measured.add(len(consumer.consume(BATCH, 1))):
        pass
    result = measured.result()
    consumer.close()
    return result


def confluent_poll(bootstrap: str, total: int) -> dict[str, float]:
    consumer = _confluent(bootstrap)

    def records() -> Iterator[object]:
        while True:
            record = consumer.poll(1)
            if record is not None:
                yield record

    result = _iterated(records(), total)
    consumer.close()
    return result


def _confluent(bootstrap: str):  # type: ignore[no-untyped-def]
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
            "enable.partition.eof": False,
        }
    )
    consumer.assign([TopicPartition("bench", 0, 0)])
    return consumer


def _iterated(records: Iterator[object], total: int) -> dict[str, float]:
    measured = Measured(total)
    for _ in records:
        if measured.add(1):
            break
    return measured.result()


READERS = {
    "confluent-kafka consume()": confluent_consume,
    "confluent-kafka poll()": confluent_poll,
    "barnabas poll()": barnabas_poll,
    "barnabas iteration": barnabas_iteration,
    "barnabas poll_arrow()": barnabas_arrow,
    "barnabas getmany()": barnabas_getmany,
    "aiokafka getmany()": aiokafka_getmany,
    "kafka-python poll()": kafka_python_poll,
}
SLOW = ("kafka-python poll()", "aiokafka getmany()")


def fill(bootstrap: str, records: int, size: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    value = b"v" * size
    for index in range(records):
        producer.produce("bench", value, b"key-%06d" % index)
        if index % 1000 == 0:
            producer.poll(0)
    producer.flush()


def child(name: str, bootstrap: str, total: int) -> dict[str, float]:
    """Run one reader in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "bench.clients_consume",
        "--child",
        name,
        bootstrap,
        str(total),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--value", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        name, bootstrap, total = arguments.child
        print(json.dumps(READERS[name](bootstrap, int(total))))
        return
    from barnabas.testing import Cluster

    rounds: list[dict[str, dict[str, float]]] = []
    with Cluster(process=True) as cluster:
        fill(cluster.bootstrap, arguments.records, arguments.value)
        for _ in range(arguments.rounds):
            rounds.append(
                {
                    name: child(
                        name,
                        cluster.bootstrap,
                        arguments.records // (10 if name in SLOW else 1),
                    )
                    for name in READERS
                }
            )
    print(f"{arguments.records:,} records of {arguments.value} bytes, {arguments.rounds} rounds")
    print(f"{'':28}{'records/s':>14}{'CPU s/M':>10}{'rate':>8}{'CPU':>8}")
    for name in READERS:
        rate = statistics.median(each[name]["rate"] for each in rounds)
        cpu = statistics.median(each[name]["cpu"] for each in rounds)
        base = "confluent-kafka consume()"
        faster = statistics.median(each[name]["rate"] / each[base]["rate"] for each in rounds)
        cheaper = statistics.median(each[base]["cpu"] / each[name]["cpu"] for each in rounds)
        print(f"{name:28}{rate:14,.0f}{cpu:10.2f}{faster:7.2f}x{cheaper:7.2f}x")


if __name__ == "__main__":
    main()

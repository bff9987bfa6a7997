"""The acts of `load.c` on confluent-kafka, for machines that cannot compile it.

One process per client, same arguments, same JSON. Its cost per record is several times that of C.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import struct
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

STAMP = struct.Struct("<q")


def open_producer(bootstrap: str, settings: dict[str, str]) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, **settings})


def open_reader(bootstrap: str, topic: str, partitions: int, settings: dict[str, str]) -> Consumer:
    base = {"bootstrap.servers": bootstrap, "group.id": "not-used", "enable.auto.commit": False}
    consumer = Consumer({**base, **settings})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    return consumer


def check(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        raise SystemExit(f"delivery: {error}")


def produce_records(
    start: Barrier,
    bootstrap: str,
    topic: str,
    partitions: int,
    number: int,
    records: int,
    size: int,
    settings: dict[str, str],
) -> None:
    producer = open_producer(bootstrap, settings)
    producer.list_topics(topic, timeout=30)
    value = b"x" * size
    stretch = 1 if partitions > 64 else 16384 // (size + 10) + 1
    start.wait()
    for index in range(records):
        partition = (index // stretch + number) % partitions
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=check)
                break
            except BufferError:
                producer.poll(0.005)
        if index % 128 == 0:
            producer.poll(0)
    if producer.flush(120) != 0:
        raise SystemExit("delivery: not within 120 s")


def consume_records(
    start: Barrier,
    first_s: Any,
    bootstrap: str,
    topic: str,
    partitions: int,
    records: int,
    settings: dict[str, str],
) -> None:
    start.wait()
    consumer = open_reader(bootstrap, topic, partitions, settings)
    while records > 0:
        messages = consumer.consume(10_000, 1.0)
        if messages and not first_s.value:
            first_s.value = time.monotonic()
        for message in messages:
            if message.error():
                raise SystemExit(f"consume: {message.error()}")
            records -= 1


def run_clients(
    target: Any, arguments: list[tuple[Any, ...]], records: int, firsts: Sequence[Any] = ()
) -> dict[str, float]:
    """Run one process per client; the clock starts when all are ready."""
    start = multiprocessing.Barrier(len(arguments) + 1)
    processes = [multiprocessing.Process(target=target, args=(start, *one)) for one in arguments]
    for process in processes:
        process.start()
    start.wait()
    began = time.monotonic()
    for process in processes:
        process.join()
    ended = time.monotonic()
    if any(process.exitcode for process in processes):
        raise SystemExit("a client failed")
    if firsts:  # from the first record received: the client's own start is not the broker's time
        began = min(first.value for first in firsts)
    return {"records": records * len(arguments), "seconds": ended - began}


def measure_latency(
    bootstrap: str, topic: str, rate: int, seconds: float, size: int, settings: dict[str, str]
) -> dict[str, float]:
    count, warm = int(rate * seconds), threading.Event()
    acknowledged: list[int] = []
    received: list[int] = []
    producer = open_producer(bootstrap, settings)
    reader = open_reader(bootstrap, topic, 1, {})

    def note(times: list[int], message: Message) -> None:
        (due_ns,) = STAMP.unpack_from(message.value() or b"")
        if due_ns:
            times.append(time.monotonic_ns() - due_ns)

    def receive() -> None:
        while len(received) < count:
            message = reader.poll(1.0)
            if message is not None:
                warm.set()
                note(received, message)

    def serve() -> None:
        while len(acknowledged) < count:
            producer.poll(0.1)

    threads = [threading.Thread(target=receive), threading.Thread(target=serve)]
    for thread in threads:
        thread.start()
    start_ns = time.monotonic_ns()
    first = None  # the first record that counts: half a second after one was received
    for index in itertools.count():
        if first is None and warm.is_set():
            first = index + rate // 2
        if first is not None and index >= first + count:
            break
        due_ns = start_ns + index * 1_000_000_000 // rate
        while (left_ns := due_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)
        counts = first is not None and index >= first
        value = STAMP.pack(due_ns if counts else 0).ljust(size, b"x")
        producer.produce(topic, value, partition=0, on_delivery=lambda _, m: note(acknowledged, m))
    for thread in threads:
        thread.join()

    def percentile_ms(times: list[int], share: float) -> float:
        return sorted(times)[int(share * (len(times) - 1))] / 1e6

    return {
        "records": count,
        "seconds": (time.monotonic_ns() - start_ns) / 1e9,
        "ack_p50_ms": percentile_ms(acknowledged, 0.5),
        "ack_p99_ms": percentile_ms(acknowledged, 0.99),
        "receive_p50_ms": percentile_ms(received, 0.5),
        "receive_p99_ms": percentile_ms(received, 0.99),
    }


def main() -> None:
    act, bootstrap, topic, *words = sys.argv[1:]
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    numbers = [word for word in words if "=" not in word]
    if act == "produce":
        partitions, clients, records, size = map(int, numbers)
        answer = run_clients(
            produce_records,
            [
                (bootstrap, topic, partitions, number, records, size, settings)
                for number in range(clients)
            ],
            records,
        )
    elif act == "consume":
        partitions, clients, records = map(int, numbers)
        firsts = [multiprocessing.Value("d", 0.0) for _ in range(clients)]
        one = (bootstrap, topic, partitions, records, settings)
        answer = run_clients(consume_records, [(f, *one) for f in firsts], records, firsts)
    elif act == "latency":
        rate, seconds, size = int(numbers[0]), float(numbers[1]), int(numbers[2])
        answer = measure_latency(bootstrap, topic, rate, seconds, size, settings)
    else:
        raise SystemExit(f"unknown act {act!r}")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

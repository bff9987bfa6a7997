"""Producers side by side: ours, confluent-kafka and kafka-python, against our broker.

    python -m bench.clients_send [--records 400000] [--repeats 3]

Each way to send runs in this process against a broker in another one, all ways in turn and that
several times, since the speed of a machine drifts; the median is shown. Rates are records per
second from the first call to the end of flush; CPU is that of this process (all threads) per
million records. Values have 100 bytes, keys 10; topics one partition unless said otherwise. Options
are each client's own but for linger.ms=5 and a queue that holds all records, and, for "large", a
batch.size of 1 MB, which is what confluent-kafka has anyway.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.pair import create_topic
from tools.processes import RunningBroker, free_port, start_barnabas

VALUE = b"v" * 100
KEY = b"k" * 10
LATENCY_COUNT = 500
SLOW_SHARE = 20
"""kafka-python sends one record in this many: it would take all the time otherwise."""

Way = Callable[[str, str, int], None]


@dataclass(frozen=True)
class Result:
    """One way to send, once."""

    rate: float
    cpu_s_per_million: float


def ours(bootstrap: str, **options: Any) -> Any:
    from barnabas.blocking.producer import KafkaProducer

    return KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **options)


def ours_forget(bootstrap: str, topic: str, count: int, **options: Any) -> None:
    with ours(bootstrap, **options) as producer:
        send = producer.send
        for _ in range(count):
            send(topic, value=VALUE, key=KEY)
        producer.flush()


def ours_large(bootstrap: str, topic: str, count: int) -> None:
    ours_forget(bootstrap, topic, count, batch_size=1 << 20)


def ours_no_key(bootstrap: str, topic: str, count: int) -> None:
    with ours(bootstrap) as producer:
        send = producer.send
        for _ in range(count):
            send(topic, VALUE)
        producer.flush()


def ours_futures(bootstrap: str, topic: str, count: int) -> None:
    with ours(bootstrap) as producer:
        futures = [producer.send(topic, value=VALUE, key=KEY) for _ in range(count)]
        producer.flush()
        assert all(future.succeeded() for future in futures)


def ours_callbacks(bootstrap: str, topic: str, count: int) -> None:
    done = 0

    def delivered(_: object) -> None:
        nonlocal done
        done += 1

    with ours(bootstrap) as producer:
        for _ in range(count):
            producer.send(topic, value=VALUE, key=KEY).add_callback(delivered)
        producer.flush()
    assert done == count


def ours_many(bootstrap: str, topic: str, count: int) -> None:
    rows = [(KEY, VALUE)] * 1000
    with ours(bootstrap, batch_size=1 << 20) as producer:
        for _ in range(count // 1000):
            producer.send_many(topic, rows)
        producer.flush()


def ours_arrow(bootstrap: str, topic: str, count: int) -> None:

    table = pa.table({"key": [KEY] * 10_000, "value": [VALUE] * 10_000})
    with ours(bootstrap, batch_size=1 << 20) as producer:
        for _ in range(count // 10_000):
            producer.send_arrow(topic, table)
        producer.flush()


def ours_latency(bootstrap: str, topic: str, count: int) -> None:
    from barnabas.blocking.producer import KafkaProducer

    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for _ in range(LATENCY_COUNT):
            producer.send(topic, value=VALUE, key=KEY).get(30)


def confluent(bootstrap: str, **options: Any) -> Any:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "enable.idempotence": True,
            **options,
        }
    )


def confluent_forget(bootstrap: str, topic: str, count: int) -> None:
    producer = confluent(bootstrap)
    produce = producer.produce
    for _ in range(count):
        produce(topic, VALUE, KEY)
    assert producer.flush(120) == 0


def confluent_callbacks(bootstrap: str, topic: str, count: int) -> None:
    done = 0

    def delivered(failure: object, _: object) -> None:
        nonlocal done
        assert failure is None
        done += 1

    producer = confluent(bootstrap)
    for number in range(count):
        producer.produce(topic, VALUE, KEY, on_delivery=delivered)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    assert done == count


def confluent_batches(bootstrap: str, topic: str, count: int) -> None:
    producer = confluent(bootstrap)
    rows = [{"key": KEY, "value": VALUE} for _ in range(1000)]
    for _ in range(count // 1000):
        producer.produce_batch(topic, [dict(row) for row in rows])
    assert producer.flush(120) == 0


def confluent_latency(bootstrap: str, topic: str, count: int) -> None:
    producer = confluent(bootstrap, **{"linger.ms": 0})
    for _ in range(LATENCY_COUNT):
        producer.produce(topic, VALUE, KEY)
        assert producer.flush(30) == 0


def kafka_python_forget(bootstrap: str, topic: str, count: int) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    for _ in range(count // SLOW_SHARE):
        producer.send(topic, value=VALUE, key=KEY)
    producer.flush()
    producer.close()


WAYS: dict[str, tuple[Way, Callable[[int], int]]] = {
    "confluent: fire and forget": (confluent_forget, lambda count: count),
    "ours: fire and forget": (ours_forget, lambda count: count),
    "ours: fire and forget, large": (ours_large, lambda count: count),
    "ours: fire and forget, no key": (ours_no_key, lambda count: count),
    "ours: a future each": (ours_futures, lambda count: count),
    "confluent: a callback each": (confluent_callbacks, lambda count: count),
    "ours: a callback each": (ours_callbacks, lambda count: count),
    "confluent: produce_batch": (confluent_batches, lambda count: count // 1000 * 1000),
    "ours: send_many": (ours_many, lambda count: count // 1000 * 1000),
    "ours: send_arrow": (ours_arrow, lambda count: count // 10_000 * 10_000),
    "kafka-python: fire and forget": (kafka_python_forget, lambda count: count // SLOW_SHARE),
    "confluent: send and wait": (confluent_latency, lambda count: LATENCY_COUNT),
    "ours: send and wait": (ours_latency, lambda count: LATENCY_COUNT),
}


def measure(way: Way, sent: int, broker: RunningBroker, topic: str, count: int) -> Result:
    """Run one way to send."""
    create_topic(broker, topic)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    way(broker.bootstrap, topic, count)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    return Result(sent / wall_s, cpu_s * 1e6 / sent)


@contextmanager
def running_broker() -> Iterator[RunningBroker]:
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        broker = start_barnabas(Path(directory) / "data", port=free_port())
        try:
            yield broker
        finally:
            broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="ways whose names contain this")
    arguments = parser.parse_args()
    chosen = {name: way for name, way in WAYS.items() if arguments.only in name}
    results: dict[str, list[Result]] = {name: [] for name in chosen}
    with running_broker() as broker:
        for repeat in range(arguments.repeats):
            for number, (name, (way, sent)) in enumerate(chosen.items()):
                count = arguments.records
                topic = f"send-{repeat}-{number}"
                results[name].append(measure(way, sent(count), broker, topic, count))
    print(f"{'way':34} {'records/s':>12} {'CPU s per million':>18}")
    for name, runs in results.items():
        rate = statistics.median(run.rate for run in runs)
        cpu = statistics.median(run.cpu_s_per_million for run in runs)
        if name.endswith("send and wait"):
            print(f"{name:34} {1e6 / rate:9.0f} us {cpu:18.2f}")
        else:
            print(f"{name:34} {rate:12,.0f} {cpu:18.2f}")


if __name__ == "__main__":
    main()

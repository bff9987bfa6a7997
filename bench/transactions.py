"""Transactions per second at 1, 10 and 100 records each, with confluent-kafka as the producer.

One producer, one transaction after the other, each over two partitions. What a client waits for
between two transactions (the markers of the last one) is part of the time.

    python -m bench.transactions [--quick] [--markdown] [--only barnabas|apache]
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from functools import partial

from bench.coordinated import arguments, measure
from bench.pair import create_topic
from bench.report import Report
from confluent_kafka import Producer
from tools.processes import RunningBroker

OPTIONS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
RECORD = b"x" * 100
PARTITIONS = 2
_numbers = itertools.count()


def transact(records: int, seconds: float, broker: RunningBroker, report: Report) -> None:
    """Commit transactions of some records each for a while."""
    topic = f"bench-transactions-{next(_numbers)}"
    create_topic(broker, topic, PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "linger.ms": 0}
    )
    producer.init_transactions(60)
    latencies: list[float] = []
    cpu, began = broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() < began + seconds:
        start = time.perf_counter()
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, value=RECORD, partition=number % PARTITIONS)
        producer.commit_transaction(60)
        latencies.append(time.perf_counter() - start)
    took, used = time.perf_counter() - began, broker.cpu_seconds() - cpu
    scenario = f"transactions of {records} records"
    count = len(latencies)
    report.add(scenario, "transactions/s", "higher", broker.name, count / took)
    report.add(scenario, "ms, median", "lower", broker.name, statistics.median(latencies) * 1000)
    report.add(scenario, "CPU ms per transaction", "lower", broker.name, used * 1000 / count)


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments("Transactions: ours beside Apache Kafka.", argv)
    seconds = 1.0 if args.quick else 5.0
    measure(
        "transactions",
        args,
        OPTIONS,
        [partial(transact, records, seconds) for records in (1, 10, 100)],
        [f"one confluent-kafka producer; {len(RECORD)}-byte records over {PARTITIONS} partitions"],
        warm_turns=1 if args.quick else 2,
        repetitions=1 if args.quick else 3,
    )


if __name__ == "__main__":
    main()

"""Exactly once from topic to topic: results and positions are committed in one transaction.

Readers with isolation_level="read_committed" see the result of each record once, whatever
fails, and whenever it does.
"""

import sys
from collections.abc import Callable
from itertools import islice

from barnabas import KafkaConsumer, KafkaProducer, OffsetAndMetadata

SOURCE, TARGET = "amounts", "doubled"


def send(bootstrap: str, count: int) -> None:
    """Send this many amounts to the source topic."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(SOURCE, b"%d" % number)


def transfer(bootstrap: str, count: int, work: Callable[[int], int]) -> None:
    """Write the results of this many records to the target."""
    # Keep the id across restarts: a transaction that the last run left open is then aborted.
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="doubling-1")
    consumer = KafkaConsumer(
        SOURCE,
        bootstrap_servers=bootstrap,
        group_id="doubling",
        enable_auto_commit=False,  # positions are committed in the transactions
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    with producer, consumer:
        producer.init_transactions()
        while count > 0:
            batches = consumer.poll(timeout_ms=1000, max_records=5)
            if not batches:
                continue
            producer.begin_transaction()
            try:
                for records in batches.values():
                    for record in records:
                        producer.send(TARGET, b"%d" % work(int(record.value)))
                        count -= 1
                positions = {
                    partition: OffsetAndMetadata(records[-1].offset + 1)
                    for partition, records in batches.items()
                }
                producer.send_offsets_to_transaction(positions, consumer.group_metadata())
                producer.commit_transaction()
            except BaseException:
                producer.abort_transaction()
                raise


def results(bootstrap: str, count: int) -> list[int]:
    """Return this many results, committed ones only."""
    options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    with KafkaConsumer(TARGET, bootstrap_servers=bootstrap, **options) as consumer:
        return [int(record.value) for record in islice(consumer, count)]


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    send(bootstrap, 10)
    transfer(bootstrap, 10, lambda amount: 2 * amount)
    print(results(bootstrap, 10))

"""At least once: the position is committed after the records were processed.

Nothing is lost; what was processed but not yet committed when the program died is processed again.
"""

import sys
from collections.abc import Callable

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "orders-to-ship"


def send(bootstrap: str, count: int) -> None:
    """Send orders, and check that each was delivered.

    acks="all" and idempotence are the defaults. The producer retries what was not acknowledged, for
    up to delivery_timeout_ms, and the broker drops duplicates.
    """
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        futures = [producer.send(TOPIC, b"order %d" % number) for number in range(count)]
        for future in futures:
            future.get(timeout=30)  # raises if this order could not be delivered


def receive(bootstrap: str, count: int, handle: Callable[[str], None]) -> None:
    """Process this many orders."""
    options = {
        "group_id": "shipping",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    with KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, **options) as consumer:
        while count > 0:
            batches = consumer.poll(timeout_ms=1000, max_records=5)
            for records in batches.values():
                for record in records:
                    count -= 1
                    handle(record.value.decode())
            consumer.commit()  # last: what is committed was processed


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    send(bootstrap, 10)
    receive(bootstrap, 10, print)

"""At most once: the position is committed before the records are processed.

A record in progress when the program died is lost, and none is processed twice.
"""

import sys
from collections.abc import Callable

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "readings"


def send(bootstrap: str, count: int) -> None:
    """Send each reading once: without acknowledgements nothing is retried."""
    options = {"acks": 0, "enable_idempotence": False, "retries": 0}
    with KafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        for number in range(count):
            producer.send(TOPIC, b"reading %d" % number)


def receive(bootstrap: str, count: int, handle: Callable[[str], None]) -> None:
    """Process this many readings."""
    options = {
        "group_id": "display",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    with KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, **options) as consumer:
        while count > 0:
            batches = consumer.poll(timeout_ms=1000, max_records=5)
            consumer.commit()  # first: these are never read again, whatever happens below
            for records in batches.values():
                for record in records:
                    count -= 1
                    handle(record.value.decode())


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    send(bootstrap, 10)
    receive(bootstrap, 10, print)

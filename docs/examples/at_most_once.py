"""At most once: the position is committed before the records are handled.

A record that was in the works when the program died is not seen again, and none is seen twice.
"""

import sys
from collections.abc import Callable

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "readings"


def send(bootstrap: str, count: int) -> None:
    """Send each reading once: without an acknowledgement there is nothing to repeat."""
    options = {"acks": 0, "enable_idempotence": False, "retries": 0}
    with KafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        for number in range(count):
            producer.send(TOPIC, b"reading %d" % number)


def receive(bootstrap: str, count: int, handle: Callable[[str], None]) -> None:
    """Handle so many readings."""
    options = {
        "group_id": "display",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    with KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, **options) as consumer:
        while count > 0:
            batches = consumer.poll(timeout_ms=1000, max_records=5)
            consumer.commit()  # first: whatever happens below, these are not read again
            for records in batches.values():
                for record in records:
                    count -= 1
                    handle(record.value.decode())


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    send(bootstrap, 10)
    receive(bootstrap, 10, print)

"""Exactly once into a database: every record has a unique key, and duplicates are dropped.

The database decides: the change that a record makes and its key are written in one transaction. So
it does not matter why a record was sent or read twice.
"""

import sqlite3
import sys

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "payments"


def send(bootstrap: str, payments: dict[str, int]) -> None:
    """Send payments with their ids as keys; it is safe to send them again."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        futures = [
            producer.send(TOPIC, key=payment.encode(), value=b"%d" % amount)
            for payment, amount in payments.items()
        ]
        for future in futures:
            future.get(timeout=30)


def receive(bootstrap: str, count: int, database: sqlite3.Connection) -> None:
    """Book this many records, duplicates included."""
    database.execute("CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, amount INTEGER)")
    options = {
        "group_id": "booking",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    with KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, **options) as consumer:
        while count > 0:
            batches = consumer.poll(timeout_ms=1000, max_records=5)
            rows = [
                (record.key.decode(), int(record.value))
                for records in batches.values()
                for record in records
            ]
            with database:  # all of these rows or none
                database.executemany("INSERT OR IGNORE INTO payments VALUES (?, ?)", rows)
            consumer.commit()
            count -= len(rows)


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    payments = {"payment-1": 100, "payment-2": 250, "payment-3": 50}
    send(bootstrap, payments)
    send(bootstrap, payments)  # the sender did not know whether the first time worked
    with sqlite3.connect(":memory:") as database:
        receive(bootstrap, 6, database)
        print(database.execute("SELECT count(*), sum(amount) FROM payments").fetchone())

"""Exactly once into a database: every record has a key of its own, and repeats are dropped.

The database is the judge: what a record does and the note that it was done are one transaction
there. So it does not matter who sent or read a record twice, or why.
"""

import sqlite3
import sys

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "payments"


def send(bootstrap: str, payments: dict[str, int]) -> None:
    """Send payments under their ids; safe to do again when in doubt."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        futures = [
            producer.send(TOPIC, key=payment.encode(), value=b"%d" % amount)
            for payment, amount in payments.items()
        ]
        for future in futures:
            future.get(timeout=30)


def receive(bootstrap: str, count: int, database: sqlite3.Connection) -> None:
    """Book so many records, repeats among them."""
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
    send(bootstrap, payments)  # the sender was not sure
    with sqlite3.connect(":memory:") as database:
        receive(bootstrap, 6, database)
        print(database.execute("SELECT count(*), sum(amount) FROM payments").fetchone())

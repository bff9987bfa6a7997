"""Send and receive Arrow tables, without a Python object per record."""

import sys

import pyarrow as pa
import pyarrow.compute as pc

from barnabas import KafkaConsumer, KafkaProducer

TOPIC = "temperatures"


def send(bootstrap: str, table: pa.Table) -> None:
    """Send each row as a record."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send_arrow(TOPIC, table).get(timeout=30)


def receive(bootstrap: str, count: int) -> pa.Table:
    """Return this many records as one table."""
    batches = []
    with KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        while sum(batch.num_rows for batch in batches) < count:
            batches.append(consumer.poll_arrow(timeout_ms=1000))
    return pa.Table.from_batches(batches)


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    cities = ["Oslo", "Rome", "Oslo", "Rome"]
    degrees = ["-3", "14", "-5", "16"]
    send(
        bootstrap,
        pa.table(
            {
                "key": pa.array(cities, pa.string()),
                "value": pa.array(degrees, pa.string()),
            }
        ),
    )
    table = receive(bootstrap, 4)
    print(table.column_names)
    numbers = pa.table(
        {
            "city": pc.cast(table["key"], pa.string()),
            "degrees": pc.cast(pc.cast(table["value"], pa.string()), pa.int64()),
        }
    )
    print(numbers.group_by("city").aggregate([("degrees", "mean")]).sort_by("city").to_pylist())

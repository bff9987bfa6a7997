"""The same records sent for throughput and sent for latency, and what the metrics say of each."""

import sys

from barnabas import KafkaProducer

TOPIC = "tuning"

THROUGHPUT = {
    "linger_ms": 20,  # wait for company
    "batch_size": 1_000_000,  # and have room for it
    "compression_type": "lz4",
    "buffer_memory": 256 * 1024 * 1024,
}
LATENCY = {
    "linger_ms": 0,  # a record leaves with the next request
}


def records_per_request(bootstrap: str, count: int, options: dict[str, object]) -> float:
    """Send so many records and return how many a request carried on average."""
    with KafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        for number in range(count):
            producer.send(TOPIC, b"a value of some length, number %d" % number)
        producer.flush(timeout=60)
        return producer.metrics()["producer-metrics"]["records-per-request-avg"]


if __name__ == "__main__":
    bootstrap = sys.argv[1]
    grouped = records_per_request(bootstrap, 100_000, THROUGHPUT)
    single = records_per_request(bootstrap, 100_000, LATENCY)
    print("throughput: more records in a request than for latency:", grouped > single)

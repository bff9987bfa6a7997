"""Send the same records for throughput and for latency, and compare the metrics."""

import sys

from barnabas import KafkaProducer

TOPIC = "tuning"

THROUGHPUT = {
    "linger_ms": 20,  # wait for more records
    "batch_size": 1_000_000,  # and make room for them
    "compression_type": "lz4",
    "buffer_memory": 256 * 1024 * 1024,
}
LATENCY = {
    "linger_ms": 0,  # a record is sent with the next request
}


def records_per_request(bootstrap: str, count: int, options: dict[str, object]) -> float:
    """Send this many records, and return the average number per request."""
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

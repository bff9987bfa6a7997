"""Options of clients: kafka-python's spelling, Kafka's spelling, and mistakes."""

import sys

from barnabas import KafkaProducer
from barnabas.errors import KafkaError

bootstrap = sys.argv[1]

with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, compression_type="zstd") as producer:
    print(producer.config["linger_ms"], producer.config["compression_type"])

# The same under Kafka's names, as in a properties file: strings are converted to numbers.
properties = {"bootstrap.servers": bootstrap, "linger.ms": "20", "compression.type": "zstd"}
with KafkaProducer(**properties) as producer:
    print(producer.config["linger_ms"], producer.config["compression_type"])

for wrong in ({"linger_msec": 20}, {"linger_ms": -1}, {"acks": "some"}):
    try:
        KafkaProducer(bootstrap_servers=bootstrap, **wrong)
    except (KafkaError, ValueError) as refusal:
        print(refusal)

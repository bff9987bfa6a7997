"""A child that imports kafka-python 2.0.2, does one act, and prints what came of it as JSON.

Run with PYTHONPATH naming the old release, as `client.py BOOTSTRAP ACT`, with the act's arguments
as JSON on stdin. Bytes travel as text. A broker's refusal is an answer too: `{"error": its class}`.
"""

import json
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, __version__
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import BrokerResponseError

assert __version__ == "2.0.2", __version__
BOOTSTRAP = sys.argv[1]


def text(data):
    return None if data is None else data.decode("latin-1")


def data(text):
    return None if text is None else text.encode("latin-1")


def create(topic, partitions=1, configs=None):
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
    (described,) = admin.describe_topics([topic])
    return {
        "listed": topic in admin.list_topics(),
        "partitions": sorted(p["partition"] for p in described["partitions"]),
    }


def delete(topic):
    KafkaAdminClient(bootstrap_servers=BOOTSTRAP).delete_topics([topic])
    return {}


def create_partitions(topic, count):
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    admin.create_partitions({topic: NewPartitions(count)})
    return {}


def describe_configs(topic):
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    (answer,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    return {entry[0]: entry[1] for entry in answer.resources[0][4]}


def alter_configs(topic, configs):
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
    return {"code": answer.resources[0][0]}


def describe_cluster():
    return KafkaAdminClient(bootstrap_servers=BOOTSTRAP).describe_cluster()


def send(topic, samples, **config):
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, linger_ms=5, **config)
    futures = [
        producer.send(
            topic,
            key=data(sample["key"]),
            value=data(sample["value"]),
            headers=[(key, data(value)) for key, value in sample["headers"]],
            timestamp_ms=sample["timestamp_ms"],
            partition=0,
        )
        for sample in samples
    ]
    offsets = [future.get(timeout=30).offset for future in futures]
    producer.close(timeout=30)
    return offsets


def send_sizes(topic, sizes, **config):
    samples = [
        {"key": None, "value": "x" * size, "headers": [], "timestamp_ms": int(time.time() * 1000)}
        for size in sizes
    ]
    return send(topic, samples, **config)


def open_consumer(topic, **config):
    consumer = KafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        enable_auto_commit=False,
        auto_offset_reset="none",
        consumer_timeout_ms=30_000,
        check_crcs=True,
        **config,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    return consumer, partition


def take(consumer, count):
    return [message for _, message in zip(range(count), consumer, strict=False)]


def read(topic, count, offset=0):
    consumer, partition = open_consumer(topic)
    consumer.seek(partition, offset)
    return [
        {
            "offset": message.offset,
            "key": text(message.key),
            "value": text(message.value),
            "timestamp_ms": message.timestamp,
            "headers": [[key, text(value)] for key, value in message.headers],
        }
        for message in take(consumer, count)
    ]


def read_sizes(topic, count):
    consumer, partition = open_consumer(topic, max_partition_fetch_bytes=12_000_000)
    consumer.seek(partition, 0)
    return [len(message.value) for message in take(consumer, count)]


def offsets(topic, timestamp_ms):
    consumer, partition = open_consumer(topic)
    found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
    consumer.seek_to_end(partition)
    at_end = consumer.position(partition)
    consumer.seek_to_beginning(partition)
    return {
        "beginning": consumer.beginning_offsets([partition])[partition],
        "end": consumer.end_offsets([partition])[partition],
        "for_time": None if found is None else found.offset,
        "position_at_end": at_end,
        "position_at_beginning": consumer.position(partition),
    }


def main():
    acts = {
        act.__name__: act
        for act in (
            create,
            delete,
            create_partitions,
            describe_configs,
            alter_configs,
            describe_cluster,
            send,
            send_sizes,
            read,
            read_sizes,
            offsets,
        )
    }
    try:
        answer = acts[sys.argv[2]](**json.load(sys.stdin))
    except BrokerResponseError as error:
        answer = {"error": type(error).__name__}
    json.dump(answer, sys.stdout)


main()

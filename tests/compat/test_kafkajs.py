"""kafkajs: the JavaScript client. It produces and administers here; another client reads.

Its consumer always joins a group. Codecs: those that need nothing compiled.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from tests.compat.samples import DEPS, ROOMY_BYTES, SIZES, Sample, make_samples, until_deadline

PACKAGES = DEPS / "kafkajs" / "node_modules"
CLIENT = Path(__file__).parent / "kafkajs" / "client.js"

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="kafkajs is not there (make deps fetches it)"),
]

Act = Callable[..., Any]


@pytest.fixture
def act(bootstrap: str) -> Act:
    """Do one act in a child process and return its answer."""

    def run(name: str, **arguments: Any) -> Any:
        done = subprocess.run(
            ["node", str(CLIENT), bootstrap, name],
            input=json.dumps(arguments),
            env={**os.environ, "NODE_PATH": str(PACKAGES)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    yield client
    client.close()


def read(consumer: Consumer, topic: str, count: int) -> list[Message]:
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages: list[Message] = []
    for left in until_deadline(f"{count} messages of {topic}"):
        messages.extend(consumer.consume(count - len(messages), min(left, 0.2)))
        if len(messages) >= count:
            break
    assert [message.error() for message in messages] == [None] * count
    return messages


def as_message(sample: Sample) -> dict[str, Any]:
    """A record as kafkajs takes it; it has no empty or repeated headers."""
    return {
        "key": None if sample.key is None else sample.key.decode(),
        "value": None if sample.value is None else sample.value.decode(),
        "timestamp": str(sample.timestamp_ms),
        "headers": {"größe": "ü"},
        "partition": 0,
    }


def seen(message: Message) -> dict[str, Any]:
    key, value = message.key(), message.value()
    return {
        "key": None if key is None else key.decode(),
        "value": None if value is None else value.decode(),
        "timestamp": str(message.timestamp()[1]),
        "headers": {name: data.decode() for name, data in message.headers()},
        "partition": message.partition(),
    }


def test_creates_describes_and_deletes_topics(act: Act, name: str) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    answer = act("create", topic=name, partitions=3, configs=configs)
    described = answer.pop("configs")
    assert answer == {"created": True, "listed": True, "partitions": [0, 1, 2]}
    assert {option: described[option] for option in configs} == configs
    assert act("create", topic=name)["created"] is False  # it reports an existing topic so
    assert act("remove", topic=name) == {"listed": False}
    assert act("remove", topic=name) == {"error": "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize("codec", ["None", "GZIP", "Snappy"])
def test_produces_by_codec(act: Act, consumer: Consumer, name: str, codec: str) -> None:
    act("create", topic=name)
    messages = [as_message(sample) for sample in make_samples()]
    (report,) = act("send", topic=name, messages=messages, compression=codec)
    assert (report["errorCode"], report["baseOffset"]) == (0, "0")
    assert [seen(message) for message in read(consumer, name, 40)] == messages


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement(act: Act, consumer: Consumer, name: str, acks: int) -> None:
    act("create", topic=name)
    messages = [as_message(sample) for sample in make_samples()]
    act("send", topic=name, messages=messages, acks=acks)
    assert [seen(message) for message in read(consumer, name, 40)] == messages


def test_idempotent_producers(act: Act, consumer: Consumer, name: str) -> None:
    act("create", topic=name)
    messages = [as_message(sample) for sample in make_samples()]
    for start in ("0", "40"):
        (report,) = act("send", topic=name, messages=messages, idempotent=True)
        assert report["baseOffset"] == start
    assert [seen(message) for message in read(consumer, name, 80)] == messages * 2


def test_messages_of_one_byte_to_ten_megabytes(act: Act, consumer: Consumer, name: str) -> None:
    act("create", topic=name, configs={"max.message.bytes": str(ROOMY_BYTES)})
    assert act("sendSizes", topic=name, sizes=SIZES) == ["0", "1", "2", "3", "4"]
    sizes = [len(message.value()) for message in read(consumer, name, len(SIZES))]
    assert sizes == list(SIZES)


def test_a_message_over_the_topics_limit_is_refused(act: Act, name: str) -> None:
    act("create", topic=name, configs={"max.message.bytes": "2000"})
    assert act("sendSizes", topic=name, sizes=[5000]) == {"error": "MESSAGE_TOO_LARGE"}


def test_lists_offsets_and_deletes_records(act: Act, name: str) -> None:
    act("create", topic=name)
    samples = make_samples()
    act("send", topic=name, messages=[as_message(sample) for sample in samples])
    offsets = act("offsets", topic=name, timestamp=samples[17].timestamp_ms)
    assert offsets["all"] == [{"partition": 0, "offset": "40", "high": "40", "low": "0"}]
    assert offsets["forTime"] == [{"partition": 0, "offset": "17"}]
    after = act("deleteRecords", topic=name, offset="25")
    assert after == [{"partition": 0, "offset": "40", "high": "40", "low": "25"}]


def test_alters_topic_configs(act: Act, name: str) -> None:
    act("create", topic=name, configs={"retention.ms": "1000000"})
    described = act("alterConfigs", topic=name, configs={"max.message.bytes": "5000"})
    assert described["max.message.bytes"] == "5000"
    assert described["retention.ms"] == "604800000"


def test_creates_partitions(act: Act, name: str) -> None:
    act("create", topic=name)
    assert act("createPartitions", topic=name, count=4) == 4
    assert act("createPartitions", topic=name, count=2) == {"error": "INVALID_PARTITIONS"}


def test_describes_the_cluster(act: Act, bootstrap: str) -> None:
    cluster = act("cluster")
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller"] == broker["nodeId"]
    assert cluster["clusterId"]

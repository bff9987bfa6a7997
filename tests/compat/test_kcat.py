"""kcat: the command line of librdkafka as Debian ships it, an older release than the Python one."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.samples import CODECS, ROOMY_BYTES, SIZES

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(
        shutil.which("kcat") is None, reason="kcat is not installed (make deps installs it)"
    ),
]

Kcat = Callable[..., bytes]


@pytest.fixture
def kcat(bootstrap: str) -> Kcat:
    """Run kcat to its end and return what it printed."""

    def run(*arguments: str, input: bytes = b"", code: int = 0) -> bytes:
        argv = ["kcat", "-b", bootstrap, "-X", "broker.address.family=v4", *arguments]
        done = subprocess.run(argv, input=input, capture_output=True, timeout=180, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def create(bootstrap: str) -> Callable[..., None]:
    """kcat administers nothing, so topics with options are made for it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def make(topic: str, partitions: int = 1, **config: str) -> None:
        dotted = {name.replace("_", "."): value for name, value in config.items()}
        admin.create_topics([NewTopic(topic, partitions, 1, config=dotted)])[topic].result(30)

    return make


def read(kcat: Kcat, topic: str, *arguments: str) -> list[dict[str, Any]]:
    """Read partition 0 to its end, as the JSON envelopes that kcat prints."""
    out = kcat("-C", "-t", topic, "-p", "0", "-e", "-q", "-J", *arguments)
    return [json.loads(line) for line in out.splitlines()]


def test_lists_brokers_and_topics(
    kcat: Kcat, create: Callable[..., None], bootstrap: str, name: str
) -> None:
    create(name, partitions=3)
    listing = json.loads(kcat("-L", "-J"))
    assert [broker["name"] for broker in listing["brokers"]] == [bootstrap]
    assert listing["controllerid"] == listing["brokers"][0]["id"]
    (topic,) = [topic for topic in listing["topics"] if topic["topic"] == name]
    assert sorted(p["partition"] for p in topic["partitions"]) == [0, 1, 2]
    assert all(p["leader"] == listing["controllerid"] for p in topic["partitions"])


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip_by_codec(kcat: Kcat, name: str, codec: str) -> None:
    lines = [b"key-%d:value %d" % (number, number) for number in range(1000)]
    before_ms = int(time.time() * 1000)
    kcat("-P", "-t", name, "-p", "0", "-K:", "-z", codec, "-H", "a=1", input=b"\n".join(lines))
    messages = read(kcat, name, "-o", "beginning", "-X", "check.crcs=true")
    assert [message["offset"] for message in messages] == list(range(1000))
    assert [f"{m['key']}:{m['payload']}".encode() for m in messages] == lines
    assert {tuple(message["headers"]) for message in messages} == {("a", "1")}
    assert {message["tstype"] for message in messages} == {"create"}
    assert all(before_ms <= message["ts"] <= time.time() * 1000 for message in messages)


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_every_kind_of_acknowledgement(kcat: Kcat, name: str, acks: str) -> None:
    kcat("-P", "-t", name, "-p", "0", "-X", f"acks={acks}", input=b"a\nb\nc\n")
    assert [m["payload"] for m in read(kcat, name, "-o", "beginning")] == ["a", "b", "c"]


def test_idempotent_producer(kcat: Kcat, name: str) -> None:
    lines = b"\n".join(b"%d" % number for number in range(500))
    settings = ["-X", "enable.idempotence=true", "-X", "batch.num.messages=7"]
    kcat("-P", "-t", name, "-p", "0", *settings, input=lines)
    messages = read(kcat, name, "-o", "beginning")
    assert [int(message["payload"]) for message in messages] == list(range(500))


def test_null_values(kcat: Kcat, name: str) -> None:
    kcat("-P", "-t", name, "-p", "0", "-Z", "-K:", input=b"a:1\na:\n")
    messages = read(kcat, name, "-o", "beginning")
    assert [(m["key"], m["payload"]) for m in messages] == [("a", "1"), ("a", None)]


def test_reads_from_offset_time_tail_and_end(kcat: Kcat, name: str) -> None:
    for batch in (b"0\n1\n2\n3\n4", b"5\n6\n7\n8\n9"):
        kcat("-P", "-t", name, "-p", "0", input=batch)
    messages = read(kcat, name, "-o", "beginning")
    assert [message["offset"] for message in messages] == list(range(10))
    assert [m["payload"] for m in read(kcat, name, "-o", "7")] == ["7", "8", "9"]
    assert [m["payload"] for m in read(kcat, name, "-o", "-2")] == ["8", "9"]
    assert read(kcat, name, "-o", "end") == []
    second_ms = messages[5]["ts"]
    assert second_ms > messages[4]["ts"]
    found = read(kcat, name, "-o", f"s@{second_ms}")
    assert [message["offset"] for message in found] == [5, 6, 7, 8, 9]
    assert kcat("-Q", "-t", f"{name}:0:{second_ms}").decode().split() == [
        name,
        "[0]",
        "offset",
        "5",
    ]


def test_messages_of_one_byte_to_ten_megabytes(
    kcat: Kcat, create: Callable[..., None], name: str, tmp_path: Any
) -> None:
    create(name, max_message_bytes=str(ROOMY_BYTES))
    for size in SIZES:
        body = tmp_path / str(size)
        body.write_bytes(b"x" * size)  # a file that kcat names as an argument is one message
        room = ["-X", f"message.max.bytes={ROOMY_BYTES}"]
        kcat("-P", "-t", name, "-p", "0", *room, str(body))
    room = ["-X", f"fetch.message.max.bytes={ROOMY_BYTES}"]
    out = kcat("-C", "-t", name, "-p", "0", "-e", "-q", "-o", "beginning", "-f", "%S\n", *room)
    assert [int(line) for line in out.split()] == list(SIZES)


def test_a_message_over_the_topics_limit_is_refused(
    kcat: Kcat, create: Callable[..., None], name: str
) -> None:
    create(name, max_message_bytes="2000")
    said = kcat("-P", "-t", name, "-p", "0", input=b"x" * 5000, code=1)
    assert b"Message size too large" in said

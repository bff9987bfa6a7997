"""Stream consumers on a real ZooKeeper: partitions are shared, and a dead member's taken over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire, batch_of, create_topic, produce, wait_for

from barnabas.blocking.streams import (
    EARLIEST,
    LATEST,
    KafkaStream,
    SimpleConsumer,
    create_consumer_connector,
)
from barnabas.client.errors import ConsumerTimeout
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate
from barnabas.testing.zookeeper import ZooKeeperServer

kazoo_client = pytest.importorskip("kazoo.client", reason="pip install 'barnabas[zookeeper]'")

pytestmark = pytest.mark.system

PARTITIONS = 7
MEMBER = """
import sys, threading
from barnabas.blocking.streams import create_consumer_connector

config = dict(each.split("=", 1) for each in sys.argv[1:])
connector = create_consumer_connector(config)
streams = connector.create_message_streams({"t": 2})["t"]
print("id", connector.consumer_id, flush=True)

def read(stream):
    for message in stream:
        sys.stdout.write(f"{message.message.decode()}\\n")
        sys.stdout.flush()

threads = [threading.Thread(target=read, args=(stream,)) for stream in streams]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


class Reading:
    """Reads a stream on a thread of its own."""

    def __init__(self, stream: KafkaStream) -> None:
        self.values: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for message in self._stream:
            self.values.append(message.message.decode())

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "a stream ends with its connector"


@pytest.fixture
def chroot(chroots: Iterator[str]) -> str:
    return next(chroots)


@pytest.fixture
def serving(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Iterator[Serving]:
    with Serving(tmp_path, {"zookeeper.connect": zookeeper.address + chroot}) as running:
        yield running


@pytest.fixture
def tree(zookeeper: ZooKeeperServer, chroot: str) -> Iterator[Any]:
    client = kazoo_client.KazooClient(zookeeper.address + chroot)
    assert client.start_async().wait(30)
    yield client
    client.stop()
    client.close()


def config(connect: str, **more: object) -> dict[str, str]:
    return {
        "zookeeper.connect": connect,
        "group.id": "g",
        "auto.offset.reset": "smallest",
        "zookeeper.session.timeout.ms": "30000",
        "zookeeper.connection.timeout.ms": "60000",
        "rebalance.backoff.ms": "200",
        "rebalance.max.retries": "50",
        **{name.replace("_", "."): str(value) for name, value in more.items()},
    }


def owners(tree: Any) -> dict[int, str]:
    """Return who owns each partition now."""
    path = "/consumers/g/owners/t"
    if tree.exists(path) is None:
        return {}
    found = {}
    for name in tree.get_children(path):
        try:
            found[int(name)] = tree.get(f"{path}/{name}")[0].decode()
        except kazoo_client.NoNodeError:
            continue
    return found


def ranged(ids: list[str], streams: int = 2) -> dict[int, str]:
    """Return what range assignment gives to consumers with so many streams each."""
    threads = sorted(f"{name}-{number}" for name in ids for number in range(streams))
    each, extra = divmod(PARTITIONS, len(threads))
    dealt = [t for n, t in enumerate(threads) for _ in range(each + (n < extra))]
    return dict(enumerate(dealt))


def fill(wire: Wire, words: str, count: int = 20) -> list[str]:
    """Send records to all partitions; return their values."""
    sent = []
    for partition in range(PARTITIONS):
        values = [f"{words}-{partition}-{number}" for number in range(count)]
        produce(wire, "t", batch_of(values), partition=partition)
        sent += values
    return sent


def test_a_dead_member_is_replaced_and_no_record_is_missed(
    serving: Serving, zookeeper: ZooKeeperServer, chroot: str, tree: Any
) -> None:
    """2 + 2 streams share 7 partitions as range says; one process is killed, the other goes on."""
    wire = serving.connect()
    create_topic(wire, "t", partitions=PARTITIONS)
    sent = fill(wire, "before")
    settings = config(zookeeper.address + chroot)
    # So long it takes to find out that it is dead; a live one must get to its heartbeats in time.
    mortal = {**settings, "zookeeper.session.timeout.ms": "6000"}
    with create_consumer_connector(settings) as connector:
        readings = [Reading(each) for each in connector.create_message_streams({"t": 2})["t"]]
        assert owners(tree) == ranged([connector.consumer_id])
        other = subprocess.Popen(
            [
                sys.executable,
                "-c",
                MEMBER,
                *(f"{name}={value}" for name, value in mortal.items()),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdout is not None
        theirs: list[str] = []
        lines = other.stdout
        drain = threading.Thread(target=lambda: theirs.extend(map(str.strip, lines)))
        try:
            other_id = other.stdout.readline().split()[1]
            drain.start()
            ids = [connector.consumer_id, other_id]
            wait_for(lambda: owners(tree) == ranged(ids), "both own their ranges")
            assert connector.assignment() == {
                TopicPartition("t", number): owner
                for number, owner in ranged(ids).items()
                if owner.startswith(connector.consumer_id)
            }
            assert sorted(tree.get_children("/consumers/g/ids")) == sorted(ids)
            sent += fill(wire, "both")
            wait_for(lambda: any(each.startswith("both") for each in theirs), "the other reads")
        finally:
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
            if drain.ident is not None:
                drain.join(30)
            other.stdout.close()
        wait_for(lambda: owners(tree) == ranged([connector.consumer_id]), "the rest is taken over")
        sent += fill(wire, "after")

        def seen() -> Counter[str]:
            return Counter(theirs) + Counter(v for each in readings for v in each.values)

        wait_for(lambda: set(seen()) == set(sent), "every record was seen")
        mine = Counter(value for each in readings for value in each.values)
        assert all(mine[value] == 1 for value in sent if value.startswith("after"))
        connector.shutdown()
        for each in readings:
            each.join()
    assert owners(tree) == {}
    assert tree.get_children("/consumers/g/ids") == []
    for partition in range(PARTITIONS):
        assert tree.get(f"/consumers/g/offsets/t/{partition}")[0] == b"60"


def next_of(stream: KafkaStream) -> Any:
    """Return the next message, however often the stream's time is up before."""
    found = []

    def arrived() -> bool:
        with contextlib.suppress(ConsumerTimeout):
            found.append(next(stream))
        return bool(found)

    wait_for(arrived, "a message comes")
    return found[0]


def test_a_stream_times_out_goes_on_and_begins_where_it_ended(
    serving: Serving, zookeeper: ZooKeeperServer, chroot: str, tree: Any
) -> None:
    """consumer.timeout.ms raises and may be asked again; offsets can be kept in Kafka, too."""
    wire = serving.connect()
    create_topic(wire, "t")
    settings = config(
        zookeeper.address + chroot,
        consumer_timeout_ms=200,
        offsets_storage="kafka",
        auto_commit_enable="false",
        consumer_id="me",
    )
    with create_consumer_connector(settings) as connector:
        [stream] = connector.create_message_streams_by_filter(
            "t,u", 1, value_decoder=lambda data: data.decode()
        )
        with pytest.raises(ConsumerTimeout, match="200 ms"):
            next(stream)
        produce(wire, "t", batch_of(["one", "two"]))
        assert [next_of(stream).message, next_of(stream).message] == ["one", "two"]
        connector.commit_offsets()
        create_topic(wire, "u")
        produce(wire, "u", batch_of(["three"]))
        wait_for(lambda: tree.exists("/consumers/g/owners/u/0"), "a topic that matches is taken")
        found = next_of(stream)
        assert (found.topic, found.offset, found.message) == ("u", 0, "three")
        data = tree.get("/consumers/g/ids/g_me")[0]
        assert data.startswith(b'{"version":1,"subscription":{"t|u":1},"pattern":"white_list",')
    assert tree.get("/consumers/g/offsets/t/0")[0] == b"2", "both places are written"

    simple = SimpleConsumer(f"{serving.address[0]}:{serving.address[1]}")
    try:
        partition = TopicPartition("t", 0)
        assert simple.fetch_offsets("g", [partition, TopicPartition("u", 0)]) == {partition: 2}
        assert simple.offset_before(partition, EARLIEST) == 0
        assert simple.offset_before(partition, LATEST) == 2
        fetched = simple.fetch({partition: 1})[partition]
        assert (fetched.error, fetched.high_watermark) == (ErrorCode.NONE, 2)
        assert [r.value for r in iterate(fetched.records)] == [b"one", b"two"]
        out = simple.fetch({partition: 9})[partition]
        assert out.error is ErrorCode.OFFSET_OUT_OF_RANGE
        simple.commit_offsets("g", {partition: 1})
        assert simple.fetch_offsets("g", [partition]) == {partition: 1}
    finally:
        simple.close()
    with create_consumer_connector({**settings, "dual.commit.enabled": "false"}) as connector:
        [stream] = connector.create_message_streams({"t": 1})["t"]
        assert next_of(stream).message == b"two"

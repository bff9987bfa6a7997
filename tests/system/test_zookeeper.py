"""One broker on a real ZooKeeper: what it writes there, who it is, and how it survives."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from tests.network.wire_cutter import WireCutter
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    produce,
    values_of,
    wait_for,
)
from tests.zookeeper import SecuredServer
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import free_port, wait_for_line

from barnabas.blocking.streams import create_consumer_connector
from barnabas.model.errors import ConfigError
from barnabas.testing.process import ProcessRunner
from barnabas.testing.zookeeper import ZooKeeperServer

kazoo_client = pytest.importorskip("kazoo.client", reason="pip install 'barnabas[zookeeper]'")

pytestmark = pytest.mark.system


class Node(NamedTuple):
    data: bytes
    ephemeral: bool
    czxid: int


@contextmanager
def tree_of(server: ZooKeeperServer, chroot: str) -> Iterator[Any]:
    client = kazoo_client.KazooClient(server.address + chroot)
    # Not `start`: it warns where a broker has yet to make the chroot.
    assert client.start_async().wait(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def dump(client: Any, path: str = "/") -> dict[str, Node]:
    """Return a node and all below it."""
    data, stat = client.get(path)
    found = {path: Node(data or b"", bool(stat.ephemeralOwner), stat.czxid)}
    for child in sorted(client.get_children(path)):
        found |= dump(client, f"{path.rstrip('/')}/{child}")
    return found


def comparable(nodes: dict[str, Node]) -> dict[str, tuple[bytes, bool]]:
    """Leave out what differs from run to run: times, random ids, ports."""
    patterns = [
        (rb'"timestamp":"\d+"', b'"timestamp":"T"'),
        (rb'"(topic_id|id)":"[\w-]{22}"', rb'"\1":"ID"'),
        (rb'"port":\d+', b'"port":P'),
        (rb"127\.0\.0\.1:\d+", b"127.0.0.1:P"),
    ]
    result = {}
    for path, node in nodes.items():
        data = node.data
        for pattern, replacement in patterns:
            data = re.sub(pattern, replacement, data)
        if path.startswith("/config/topics/"):
            # Java writes the values of a topic in the order of their hashes.
            data = json.dumps(json.loads(data), sort_keys=True).encode()
        result[path] = data, node.ephemeral
    return result


OPTIONS = {
    "broker.id": "1",
    "broker.rack": "r1",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
}


def use(bootstrap: str) -> None:
    """Do to a cluster what leaves traces in its tree."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    configs = {"retention.ms": "1000", "cleanup.policy": "compact"}
    # librdkafka waits in vain if the broker names no controller yet when it is first asked.
    wait_for(lambda: admin.list_topics(timeout=30).controller_id >= 0, "there is a controller")
    wanted = [NewTopic("plain", 2, 1), NewTopic("tuned", 1, 1, config=configs)]
    for created in admin.create_topics(wanted).values():
        created.result(90)  # a broker in Java may have other things to do yet
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce("plain", b"x")
    assert producer.flush(90) == 0


def read_with_streams(connect: str) -> None:
    """Read what was sent, with offsets in Kafka and in the tree."""
    settings = {
        "zookeeper.connect": connect,
        "group.id": "g",
        "auto.offset.reset": "smallest",
        "offsets.storage": "kafka",
        "consumer.timeout.ms": "30000",
        "zookeeper.connection.timeout.ms": "60000",
        "rebalance.backoff.ms": "200",
        "rebalance.max.retries": "100",
    }
    with create_consumer_connector(settings) as connector:
        [stream] = connector.create_message_streams({"plain": 1})["plain"]
        assert next(stream).message == b"x"
        connector.commit_offsets()


@contextmanager
def apache_kafka(folder: Path, connect: str) -> Iterator[str]:
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    port = free_port()
    settings = {
        **OPTIONS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "logs"),
        "zookeeper.connect": connect,
    }
    folder.mkdir()
    properties, log = folder / "server.properties", folder / "server.log"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    told = ["-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaServer=info"]
    argv = kafka.command("kafka-server-start", str(properties), java_options=told)
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        wait_for_line(process, log, "id=1] started", 180)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_the_tree_is_what_apache_kafka_writes(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """Paths, kinds and bytes are those of Apache Kafka 3.9 after the same requests."""
    theirs_at, ours_at = next(chroots), next(chroots)
    with (
        apache_kafka(tmp_path / "kafka", zookeeper.address + theirs_at) as bootstrap,
        tree_of(zookeeper, theirs_at) as client,
    ):
        use(bootstrap)
        theirs = comparable(dump(client))
        read_with_streams(zookeeper.address + theirs_at)
        owned = [path for path in dump(client) if path.startswith("/consumers/g/owners/plain/")]
        assert owned == [], "the consumer has let go"
    runner = ProcessRunner()
    host, port = runner.start(
        {
            **OPTIONS,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "data"),
            "zookeeper.connect": zookeeper.address + ours_at,
        }
    )
    try:
        use(f"{host}:{port}")
        with tree_of(zookeeper, ours_at) as client:
            ours = comparable(dump(client))
    finally:
        runner.stop()
    assert ours == theirs
    with tree_of(zookeeper, ours_at) as client:
        assert client.get_children("/brokers/ids") == []
        assert client.exists("/controller") is None


def test_topics_and_records_outlive_the_broker_and_the_epoch_grows(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """The registration's creation id is the broker's epoch; topics are found again."""
    chroot = next(chroots)
    serving = Serving(tmp_path, {"zookeeper.connect": zookeeper.address + chroot})
    epochs = []
    with tree_of(zookeeper, chroot) as client:
        for life in range(2):
            with serving:
                wire = serving.connect()
                topic = "kept"
                if life == 0:
                    create_topic(wire, topic)
                produce(wire, topic, batch_of([f"life {life}"]))
                assert values_of(fetch(wire, topic))[-1] == b"life %d" % life
                node = dump(client, "/brokers/ids/0")["/brokers/ids/0"]
                assert serving.broker.cluster.brokers[0].epoch == node.czxid
                epochs.append(node.czxid)
        assert epochs[0] < epochs[1]
        assert client.get("/controller_epoch")[0] == b"2"


def test_a_node_deletes_no_topic_where_that_is_switched_off(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """As with Apache Kafka the node is removed; one from before the start goes, too."""
    chroot = next(chroots)
    options = {"zookeeper.connect": zookeeper.address + chroot, "delete.topic.enable": "false"}
    serving = Serving(tmp_path, options)
    with tree_of(zookeeper, chroot) as client:
        with serving:
            wire = serving.connect()
            create_topic(wire, "kept")
            produce(wire, "kept", batch_of(["here"]))
            client.create("/admin/delete_topics/kept")
            wait_for(lambda: not client.get_children("/admin/delete_topics"), "the node is gone")
            serving.expect_line("delete.topic.enable=false")
            assert values_of(fetch(wire, "kept")) == [b"here"]
        client.create("/admin/delete_topics/kept")
        with serving:
            wire = serving.connect()
            wait_for(lambda: not client.get_children("/admin/delete_topics"), "the node is gone")
            serving.expect_line("delete.topic.enable=false")
            assert values_of(fetch(wire, "kept")) == [b"here"]
            assert client.exists("/brokers/topics/kept/partitions/0/state")


def test_a_broker_that_moves_tells_it_in_the_same_life(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """Its node is written anew, not made anew, and a new session tells the same."""
    chroot = next(chroots)
    with WireCutter(zookeeper.port) as network, tree_of(zookeeper, chroot) as client:
        options = {
            "zookeeper.connect": network.address + chroot,
            "zookeeper.session.timeout.ms": "4000",
            "zookeeper.connection.timeout.ms": "60000",
        }
        with Serving(tmp_path, options) as serving:

            def told() -> str:
                data, _ = client.get("/brokers/ids/0")
                (endpoint,) = json.loads(data)["endpoints"]
                return str(endpoint)

            before = dump(client, "/brokers/ids/0")["/brokers/ids/0"]
            admin = AdminClient({"bootstrap.servers": "{}:{}".format(*serving.address)})
            there = "PLAINTEXT://127.0.0.1:1"
            entry = ConfigEntry(
                "advertised.listeners",
                there,
                incremental_operation=AlterConfigOpType.SET,
            )
            resource = ConfigResource(ConfigResource.Type.BROKER, "0", incremental_configs=[entry])
            (changed,) = admin.incremental_alter_configs([resource]).values()
            changed.result(60)
            wait_for(lambda: told() == there, "the tree tells it")
            after = dump(client, "/brokers/ids/0")["/brokers/ids/0"]
            assert (after.czxid, after.ephemeral) == (before.czxid, True)
            assert serving.broker.broker_epoch == before.czxid
            network.cut()
            wait_for(lambda: client.exists("/brokers/ids/0") is None, "the session has expired")
            network.restore()
            wait_for(lambda: client.exists("/brokers/ids/0"), "the broker is back")
            assert told() == there
            wait_for(lambda: serving.broker.controller.term is not None, "it is in office")
            serving.expect_line("is expired")


def test_ids_are_generated_and_clashes_are_refused(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """Without an id the cluster's sequence gives one, which the directory keeps."""
    chroot = next(chroots)
    options = {
        "zookeeper.connect": zookeeper.address + chroot,
        "broker.id": "-1",
    }
    first = Serving(tmp_path / "first", options)
    with first:
        assert first.broker.broker_id == 1001
        double = Serving(tmp_path / "double", {**options, "broker.id": "1001"})
        double.options["reserved.broker.max.id"] = "2000"
        double.options["zookeeper.session.timeout.ms"] = "2000"
        with pytest.raises(ConfigError, match=r"broker.id=1001: another live broker"):
            double.start()
        double._forget()
        with tree_of(zookeeper, chroot) as client:
            assert client.get_children("/brokers/ids") == ["1001"]
    with first:
        assert first.broker.broker_id == 1001

    elsewhere = {**options, "zookeeper.connect": zookeeper.address + next(chroots)}
    stranger = Serving(tmp_path / "first", elsewhere)
    with pytest.raises(
        ConfigError, match=r"belongs to cluster .*, but ZooKeeper has no cluster id"
    ):
        stranger.start()
    stranger._forget()
    with Serving(tmp_path / "other", elsewhere):
        with pytest.raises(ConfigError, match=r"belongs to cluster .*, not to"):
            stranger.start()
        stranger._forget()


def test_a_lost_session_is_followed_by_another(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    """Cut off past its session a broker serves on, and registers again with a higher epoch."""
    chroot = next(chroots)
    with WireCutter(zookeeper.port) as network, tree_of(zookeeper, chroot) as client:
        serving = Serving(
            tmp_path,
            {
                "zookeeper.connect": network.address + chroot,
                "zookeeper.session.timeout.ms": "4000",
                "zookeeper.connection.timeout.ms": "60000",
            },
        )
        with serving:
            wire = serving.connect()
            create_topic(wire, "t")
            before = serving.broker.cluster.brokers[0].epoch
            network.cut()
            wait_for(lambda: client.exists("/brokers/ids/0") is None, "the session has expired")
            produce(wire, "t", batch_of(["while away"]))
            network.restore()
            wait_for(lambda: client.exists("/controller"), "the broker is the controller again")
            node = dump(client, "/brokers/ids/0")["/brokers/ids/0"]
            assert node.czxid > before
            wait_for(
                lambda: serving.broker.cluster.brokers[0].epoch == node.czxid, "it knows its epoch"
            )
            wait_for(lambda: serving.broker.controller.term is not None, "it is in office")
            create_topic(wire, "u")
            assert client.exists("/brokers/topics/u/partitions/0/state")
            serving.expect_line("is expired")


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    """No server, or no address: one line on standard error, and a failure."""
    for connect, said in (
        (f"127.0.0.1:{free_port()}", "could not open a session with ZooKeeper at 127.0.0.1:"),
        ("127.0.0.1:0/x", "zookeeper.connect=127.0.0.1:0/x: '127.0.0.1:0' is not host:port"),
    ):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "barnabas.cli", "start", "--log-level", "error"),
                *("--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"),
                *("--zookeeper", connect, "--set", "zookeeper.connection.timeout.ms=300"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"barnabas start: {said}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_a_broker_that_zookeeper_does_not_know_says_so_in_one_line(
    zookeeper_classpath: str, tmp_path: Path
) -> None:
    """It ends with what to do; nothing secret is in it. The one that is known serves."""
    secured = SecuredServer(zookeeper_classpath, tmp_path)

    def start(number: int, **options: str) -> subprocess.Popen[str]:
        words = ["--data-dir", str(tmp_path / f"{number}"), "--listen", "127.0.0.1:0"]
        words += ["--zookeeper", f"{secured.server.address}/kafka", "--log-level", "error"]
        words += [f"--set={name}={value}" for name, value in options.items()]
        return subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", "start", f"--id={number}", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    owner = {**secured.login("broker"), "zookeeper.set.acl": "true"}
    with secured.server:
        known = start(1, **owner)
        try:
            assert known.stdout is not None
            assert "is ready on" in known.stdout.readline()
            for number, options, said in (
                (2, secured.login("broker", "wr0ng"), "rejected the login of user 'broker'"),
                (
                    3,
                    secured.login("other"),
                    "/config/users: not allowed by ZooKeeper's ACL; log in",
                ),
                (4, {}, "/config/users: not allowed by ZooKeeper's ACL; log in"),
                (5, {"zookeeper.set.acl": "true"}, "zookeeper.set.acl=true requires credentials"),
            ):
                refused = start(number, **options)
                shown, _ = refused.communicate(timeout=60)
                assert refused.returncode == 1
                assert said in shown
                assert shown.count("\n") == 1, shown
                assert "wr0ng" not in shown
        finally:
            known.terminate()
            known.communicate(timeout=60)
    assert known.returncode == 0

"""One machine, several workers: clients spread over them, and none of them is missed for long.

The tests share a supervisor and its data, in order; each leaves it running.
"""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, PartitionMetadata
from tests.system.paging import Terminal, blocks, lines
from tests.system.supervised import (
    DEADLINE_S,
    LEAVING,
    STARTED,
    Load,
    OwnLoad,
    Supervised,
    alive,
    create,
    partition,
    read,
    until,
)

from barnabas import KafkaAdminClient
from barnabas.cli.main import COMMANDS, parser
from barnabas.cli.start import option_values
from barnabas.config.properties import read_properties
from barnabas.testing.zookeeper import ZooKeeperServer
from barnabas.workers.plan import WorkerPlan

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("workers")]

SESSION = "zookeeper.session.timeout.ms=600000"
"""Far beyond the tests' deadlines: a session that had to time out would fail them."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervised]:
    settings = [SESSION, "auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0"]
    words = [word for each in settings for word in ("--set", each)]
    words += ["--metrics", "127.0.0.1:0", "--console", "127.0.0.1:0"]
    running = Supervised(tmp_path_factory.mktemp("workers"), 3, *words)
    try:
        yield running.start()
    finally:
        running.end()


def test_clients_spread_over_the_workers(workers: Supervised) -> None:
    create(workers.bootstrap, "spread", 6, 3)
    assert {partition(workers.bootstrap, "spread", each).leader for each in range(6)} == {1, 2, 3}
    producer = Producer({"bootstrap.servers": workers.bootstrap, "acks": "all"})
    for number in range(600):
        producer.produce("spread", str(number).encode(), partition=number % 6)
    assert producer.flush(DEADLINE_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": workers.bootstrap,
            "group.id": "all",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["spread"])
    found: list[int] = []
    while len(found) < 600:
        messages = consumer.consume(600, DEADLINE_S)
        assert messages
        found += [int(each.value() or b"") for each in messages]
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted(found) == list(range(600))


def test_internal_topics_have_a_replica_on_each_worker(workers: Supervised) -> None:
    admin = AdminClient({"bootstrap.servers": workers.bootstrap})
    offsets = admin.list_topics("__consumer_offsets", DEADLINE_S).topics["__consumer_offsets"]
    assert {len(each.replicas) for each in offsets.partitions.values()} == {3}
    nodes = admin.describe_cluster().result(DEADLINE_S).nodes
    assert len(nodes) == 3
    racks = {each.rack for each in nodes}
    assert len(racks) == 1, "they are on one machine"
    assert None not in racks


def test_metrics_and_pages_are_of_all_workers(workers: Supervised) -> None:
    (metrics,) = re.findall(r"^metrics: (http://\S+)/metrics$", workers.out(), re.M)
    (console,) = re.findall(r"^console on (http://\S+)$", workers.out(), re.M)
    text = fetched(f"{metrics}/metrics?names=jmx")
    whose = re.findall(r'^kafka_server_replicamanager_partitioncount\{worker="(\d)"', text, re.M)
    assert whose == ["1", "2", "3"]
    assert fetched(f"{metrics}/health/ready") == "ready\n"
    page = fetched(f"{console.rstrip('/')}/brokers")
    assert all(address.split(":")[1] in page for address in workers.bootstrap.split(","))


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("client", [Load, OwnLoad])
def test_a_worker_is_killed_under_load(workers: Supervised, client: type[Load]) -> None:
    """Its session ends with its process: nobody waits for a timeout.

    What librdkafka waits for is its own next look at the metadata, once a second.
    """
    topic = f"killed-{client.__name__}"
    create(workers.bootstrap, topic, 1, 3)
    with client(workers.bootstrap, topic) as load:
        load.more()
        for _ in range(2):
            victim = partition(workers.bootstrap, topic).leader
            pid = workers.kill(victim)
            until(partial(led_by_another, workers, topic, victim), "its successor as leader")
            load.more()
            until(partial(replaced, workers, victim, pid), "its successor")
            until(lambda: len(partition(workers.bootstrap, topic).isrs) == 3, "its replica")
        print(f"longest time without an acknowledgement: {load.gap_s * 1000:.0f} ms")
        load.check()
    assert workers.err().count("ended with signal 9, restarted in 0.1 s") >= 1


def led_by_another(workers: Supervised, topic: str, broker_id: int) -> bool:
    return partition(workers.bootstrap, topic).leader != broker_id


def replaced(workers: Supervised, number: int, pid: int) -> bool:
    return workers.pid(number) != pid


def test_a_rolling_restart_under_load(workers: Supervised) -> None:
    create(workers.bootstrap, "rolled", 1, 3)
    with Load(workers.bootstrap, "rolled") as load:
        load.more()
        before = {number: workers.pid(number) for number in (1, 2, 3)}
        lines = len(workers.err())
        workers.signal(signal.SIGHUP)
        until(lambda: "rolling restart completed" in workers.err()[lines:], "the rolling restart")
        said = workers.err()[lines:]
        assert [int(each) for each in LEAVING.findall(said)] == [1, 2, 3]
        assert [int(each) for each, _ in STARTED.findall(said)] == [1, 2, 3]
        assert all(workers.pid(number) != pid and not alive(pid) for number, pid in before.items())
        load.more()
        print(f"longest time without an acknowledgement: {load.gap_s * 1000:.0f} ms")
        load.check()  # on the addresses from before


def test_lines_have_the_id_of_their_worker(workers: Supervised) -> None:
    ids = {found[1] for found in re.finditer(r"^\[(\d+)\] \d{4}-\d\d-\d\d ", workers.err(), re.M)}
    assert ids == {"1", "2", "3"}


def test_all_leave_in_turn_and_come_back(workers: Supervised) -> None:
    create(workers.bootstrap, "kept", 1, 3)
    with Load(workers.bootstrap, "kept") as load:
        load.more()
        sent = load.finish()
    workers.signal(signal.SIGTERM)
    assert workers.wait() == 0
    assert workers.out().splitlines()[-1] == "Barnabas stopped cleanly"
    said = workers.err()
    assert [int(each) for each in LEAVING.findall(said)[-3:]] == [3, 2, 1]
    assert not any(map(alive, workers.pids()))
    workers.start()
    assert len(read(workers.bootstrap, "kept", sent)) == sent
    assert "recover" not in workers.err()


def test_workers_do_not_outlive_their_supervisor(workers: Supervised) -> None:
    create(workers.bootstrap, "orphaned", 1, 3)
    with Load(workers.bootstrap, "orphaned") as load:
        load.more()
        sent = load.finish()
    pids = [workers.pid(number) for number in (1, 2, 3)]
    workers.signal(signal.SIGKILL)
    workers.wait()
    until(lambda: not any(map(alive, pids)), "the end of the workers")
    assert "Traceback" not in workers.err()
    workers.start()
    assert len(read(workers.bootstrap, "orphaned", sent)) == sent
    assert "recover" not in workers.err(), "the workers have closed their logs"


def test_more_workers_get_their_share(
    workers: Supervised,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the page has it."""
    workers.signal(signal.SIGTERM)
    assert workers.wait() == 0
    workers.count = 4
    workers.start()
    until(lambda: all_in_sync(workers), "all replicas in sync")
    terminal = Terminal(workers.bootstrap, tmp_path, capfd, monkeypatch)
    for line in lines(blocks("use-all-cores.md", "sh")[-1]):
        terminal.type(line)
    until(lambda: uneven(workers) <= 1, "as many leaders on each worker")


def partitions(workers: Supervised) -> list[PartitionMetadata]:
    topics = AdminClient({"bootstrap.servers": workers.bootstrap}).list_topics(timeout=DEADLINE_S)
    return [each for topic in topics.topics.values() for each in topic.partitions.values()]


def all_in_sync(workers: Supervised) -> bool:
    return all(sorted(each.isrs) == sorted(each.replicas) for each in partitions(workers))


def uneven(workers: Supervised) -> int:
    """Return how many more partitions one worker leads than another."""
    leaders = Counter(each.leader for each in partitions(workers))
    assert leaders.keys() <= {1, 2, 3, 4}
    counts = [leaders[number] for number in (1, 2, 3, 4)]
    return max(counts) - min(counts)


def test_the_commands_of_the_page_can_be_typed() -> None:
    start = next(command for command in COMMANDS if command.name == "start")
    typed = [line for block in blocks("use-all-cores.md", "sh") for line in lines(block)]
    started = [line.split() for line in typed if line.startswith("barnabas start ")]
    assert len(started) == 3
    for words in started:
        arguments = parser(start).parse_args(words[2:])
        WorkerPlan(option_values(arguments), "machine").check()


def test_workers_join_zookeeper(tmp_path: Path, zookeeper_classpath: str) -> None:
    with ZooKeeperServer(zookeeper_classpath) as server:
        words = ("--zookeeper", f"{server.address}/kafka", "--id", "101")
        joined = Supervised(tmp_path, 2, *words)
        try:
            joined.start()
            create(joined.bootstrap, "t", 2, 2)
            assert {partition(joined.bootstrap, "t", n).leader for n in (0, 1)} == {101, 102}
            with Load(joined.bootstrap, "t") as load:
                load.more()
                load.check()
            assert not (tmp_path / "data" / "coordination.sqlite").exists()
            pids = joined.pids()
            joined.signal(signal.SIGKILL)
            until(lambda: not any(map(alive, pids)), "the end of the workers")
        finally:
            joined.end()


def test_secured_workers(tmp_path: Path) -> None:
    secured = Supervised(tmp_path, 2, "--secure", str(tmp_path / "security"))
    try:
        secured.start(f"127.0.0.1:{free_pair()}")
        options = read_properties((tmp_path / "security" / "admin.properties").read_text())
        options["bootstrap.servers"] = secured.bootstrap
        with KafkaAdminClient(
            **{name.replace(".", "_"): v for name, v in options.items()}
        ) as admin:
            assert len(admin.describe_cluster()["brokers"]) == 2
    finally:
        secured.end()


def free_pair() -> int:
    """Return a port that is free, with the next one."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = int(first.getsockname()[1])
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
                return port


def test_a_directory_has_one_kind_of_owner(workers: Supervised, tmp_path: Path) -> None:
    data = workers._directory / "data"

    def refused(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", "start", "--listen", "127.0.0.1:0", *words],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 1
        return done.stderr.splitlines()[-1]

    assert "4 workers have their data there" in refused("--data-dir", str(data))
    line = refused("--data-dir", str(data), "--workers", "2")
    assert "worker 4 has data there; start it with --workers 4" in line
    assert "cannot use" in refused("--data-dir", str(data), "--workers", "4")
    (tmp_path / "meta.properties").write_text("version=0\n")
    line = refused("--data-dir", str(tmp_path), "--workers", "2")
    assert "a single broker has its data there" in line
    assert [each.name for each in tmp_path.iterdir()] == ["meta.properties"]

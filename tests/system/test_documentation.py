"""The pages without Spark: what they show can be typed, and does what they say.

Answers that a page shows are compared in names, columns and form; of the others it is looked at
what they have done.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.system.paging import ROOT, Terminal, blocks, form, lines, typed
from tools.processes import RunningBroker, free_port, start_barnabas, wait_for_line

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.testing import Cluster

pytestmark = pytest.mark.system

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
KAFKAJS = ROOT / ".deps" / "kafkajs" / "node_modules"
QUICK = {"group.initial.rebalance.delay.ms": "0"}
DEADLINE_S = 120.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of the test's own, as pages have it: its data is in `data`, and it knows nothing."""
    running = start_barnabas(tmp_path / "data", options=QUICK)
    yield running
    running.stop()


@pytest.fixture
def terminal(
    broker: RunningBroker,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Terminal:
    return Terminal(broker.bootstrap, tmp_path, capfd, monkeypatch)


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"in vain: {what}"
        time.sleep(0.05)


def values(terminal: Terminal, topic: str) -> list[str]:
    return sorted(terminal.type(f"barnabas consume {topic} --exit-at-end").splitlines())


def described(terminal: Terminal, topic: str) -> list[dict[str, Any]]:
    (found,) = json.loads(terminal.type(f"barnabas topics describe {topic} --json"))
    partitions: list[dict[str, Any]] = found["partitions"]
    return partitions


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    """Make a topic whose partitions have so many records each, in batches of a hundred."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for first in range(0, count, 100):
            for partition in range(partitions):
                for number in range(first, min(first + 100, count)):
                    producer.send(topic, b"%d" % number, partition=partition)
            producer.flush()


def test_the_readme(broker: RunningBroker, terminal: Terminal) -> None:
    pytest.importorskip("duckdb", reason="pip install 'barnabas[sql]'")
    _, use, ask = blocks(README, "sh")
    start, *commands = lines(use)
    assert start.split()[:2] == ["barnabas", "start"]
    printed = [terminal.type(command) for command in commands]
    assert sorted(printed[2].split()) == ["hello", "world"]
    others, ours, _, own = blocks(README, "python")
    for program in (others, ours):
        exec(program.replace("127.0.0.1:9092", broker.bootstrap), {})
    wanted = ["from barnabas", "from librdkafka", "hello", "world"]
    assert values(terminal, "orders") == wanted
    assert [line.split()[0] for line in sorted(terminal.type(ask).splitlines())] == [
        *("k1", "k2", "k3", "k4", "key")
    ]
    exec(own, {})


def test_the_tutorial(broker: RunningBroker, terminal: Terminal) -> None:
    run, make, send, program, group = blocks(TUTORIAL, "sh")
    assert run == "make run RUN=broker\n"
    (ready,) = blocks(TUTORIAL, "text")
    said = broker.log_dir.with_name("data.out").read_text().replace(str(broker.log_dir), "data")
    assert form(ready)[0] in form(said)
    for command in lines(make):
        terminal.type(command)
    assert len(described(terminal, "orders")) == 3
    told, plain, whole = [terminal.type(command) for command in lines(send)]
    assert told.startswith("2 records sent to orders")
    assert sorted(plain.split()) == ["hello", "world"]
    assert sorted(json.loads(line)["key"] for line in whole.splitlines()) == ["k1", "k2"]
    assert terminal.type(program).startswith("1000 records, the first: b'")
    rows = [line.split() for line in terminal.type(group).splitlines()[2:]]
    assert sum(int(row[4]) for row in rows) == 2, "what is left, as the page says"


def test_configuring(broker: RunningBroker, terminal: Terminal) -> None:
    fill(broker.bootstrap, "orders", 1, 0)
    changes = lines(blocks("configure.md", "sh")[1])
    printed = [terminal.type(command) for command in changes]
    assert len(printed) == 4
    assert "log.dirs" in printed[0]
    left = terminal.type("barnabas configs describe --topic orders --json")
    own = {entry["name"]: entry["value"] for entry in json.loads(left)}
    assert own == {"flush.messages": "1000", "max.message.bytes": "2000000"}


def test_quotas(broker: RunningBroker, terminal: Terminal) -> None:
    ada, default, address, listed, usage, removed = [
        terminal.type(command) for command in lines(blocks("quotas.md", "sh")[0])
    ]
    assert ada == "quotas of user ada set\n"
    assert default == "quotas of user <default> client-id <default> set\n"
    assert address == "quotas of ip 10.0.0.7 set\n"
    assert len(listed.splitlines()) == 1 + 4
    assert "request_percentage" in usage
    assert removed == "quotas of user ada removed\n"
    left = json.loads(terminal.type("barnabas quotas list --json"))
    assert [entry["entity"] for entry in left] == [
        {"ip": "10.0.0.7"},
        {"user": None, "client-id": None},
    ]


def test_traces(broker: RunningBroker, terminal: Terminal) -> None:
    assert len(terminal.follow("trace.md")) == 2
    client_id = "web-1"
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "client.id": client_id}
    )
    producer.produce("orders", b"tea")
    assert producer.flush(60) == 0
    terminal.type("barnabas configs alter --client-metrics all --set interval.ms=100")
    listing, one, some = lines(blocks("trace.md", "sh")[1])
    connections = "org.apache.kafka.producer.connection.creation.total"
    wait_for(
        lambda: producer.poll(0.05) or connections in terminal.type(some, code=None),
        "the client pushes",
    )
    assert client_id in terminal.type(listing)
    assert connections in terminal.type(one)
    producer.close()


def test_the_program_with_traces(broker: RunningBroker, terminal: Terminal) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="pip install opentelemetry-sdk")
    (program,) = blocks("trace.md", "python")
    (shown,) = blocks("trace.md", "text")
    program = program.replace("127.0.0.1:9092", broker.bootstrap)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    printed = [line.split(maxsplit=3) for line in ran.stdout.splitlines()]
    assert [words[-1] for words in printed] == [
        line.split(maxsplit=3)[-1] for line in shown.splitlines()
    ]
    spans = [words for words in printed if len(words) > 1]
    (trace_id,) = {each[0] for each in spans}
    assert len(trace_id) == 32
    sent, received, pack, processed = spans
    assert sent[1] == "-" * 16
    assert received[1] == processed[1] == sent[2]
    assert pack[1] == processed[2]


def test_measuring(broker: RunningBroker, terminal: Terminal) -> None:
    created, produced, *others = [
        terminal.type(line) for block in blocks("measure.md", "sh") for line in lines(block)
    ]
    assert created == "created topic measured\n"
    (shown,) = blocks("measure.md", "text")
    printed = produced.splitlines()
    assert printed[0].split() == shown.splitlines()[0].split()
    assert printed[1].split()[2:4] == ["20000", "0"]
    assert printed[3].split() == shown.splitlines()[3].split()
    assert "barnabas: latencies of 20,000 records" in printed
    assert [line.split()[2] for line in others[-1].splitlines()[1:5]] == ["5000"] * 4


def test_installing(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make dist` tries what it has built; here are the rest, and the unit that the page copies."""
    pytest.importorskip("shtab", reason="pip install shtab")
    monkeypatch.setenv("HOME", str(tmp_path))
    _, completion = blocks("install.md", "sh")
    for command in lines(completion):
        terminal.type(command)
    written = tmp_path / ".local/share/bash-completion/completions/barnabas"
    assert "-F _shtab_barnabas barnabas\n" in written.read_text()
    assert (tmp_path / ".config/fish/completions/barnabas.fish").stat().st_size > 10_000

    (service,) = blocks("install.md", "console")
    unit = (ROOT / "packaging" / "barnabas.service").read_text()
    for line in (
        *("User=barnabas", "WorkingDirectory=/var/lib/barnabas"),
        "ExecStart=/usr/local/bin/barnabas start --config /etc/barnabas/server.properties",
    ):
        assert f"\n{line}\n" in unit
    for word in ("useradd --system", "/var/lib/barnabas", "/usr/local/bin/", "/etc/barnabas/"):
        assert word in service


def test_asking_why(broker: RunningBroker, terminal: Terminal) -> None:
    fill(broker.bootstrap, "orders", 1, 10)
    asked, read, keep, allow = map(lines, blocks("why.md", "sh"))
    terminal.type("barnabas groups reset-offsets billing --topic orders --to 5 --execute")
    terminal.type("barnabas groups reset-offsets billing --topic orders --to 2 --execute")
    (own,) = json.loads(terminal.type("barnabas cluster describe --json"))["brokers"]
    reset = "offsets set by barnabas-cli"
    wait_for(lambda: reset in terminal.type("barnabas why group billing"), "it is written")
    answers = [terminal.type(each.replace("broker 1", f"broker {own['id']}")) for each in asked]
    assert len(answers) == 8
    assert "orders-0 from 5 to 2" in answers[0]
    assert json.loads(answers[1])["subject"] == "group:billing"
    assert "leads in epoch 0" in answers[2]
    assert "alive, the controller," in answers[6]
    assert "1 partition with 1 replica each" in answers[7]
    everything, of_groups, of_partition = [terminal.type(command) for command in read]
    assert "group:billing" in everything
    assert reset in everything
    assert of_groups == "", "it has never had a member"
    assert {entry["subject"] for entry in json.loads(of_partition)} == {"orders-0"}
    (command,) = keep
    terminal.type(command)
    (command,) = allow
    assert command.startswith("barnabas acls add"), "this broker has no authorizer"


def test_securing_a_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page begins at nothing: its directory has the broker's port, which differs here."""
    page = "secure-a-cluster.md"
    begin, tools, clients, users, several, strict, renewal = map(lines, blocks(page, "sh"))
    ready, _ = blocks(page, "text")
    shown, in_tests = blocks(page, "python")
    port = free_port()
    terminal = Terminal(f"127.0.0.1:{port}", tmp_path, capfd, monkeypatch)
    install, init, start = begin
    assert install == "pip install 'barnabas[security]'"
    assert terminal.type(f"{init} --port {port}").count("created") == 21
    log = tmp_path / "out"
    with log.open("wb") as output:
        broker = subprocess.Popen(shlex.split(start), stdout=output, stderr=subprocess.DEVNULL)
    try:
        wait_for_line(broker, log, "options, programs", DEADLINE_S)
        assert form(log.read_text()) == form(ready)
        variable, _, value = tools.pop(0).removeprefix("export ").partition("=")
        monkeypatch.setenv(variable, value)
        _, named, allowed, why = [terminal.type(command) for command in tools]
        assert {line.split()[0] for line in named.splitlines()[1:]} == {"admin", "app"}
        assert allowed.count("User:app") == 8
        assert "allowed" in why
        written = Path("security/clients/app/confluent_kafka_example.py").read_text()
        assert written == shown.replace("9092", str(port))
        *programs, node, kcat, ours = clients
        if shutil.which("node") is not None and KAFKAJS.is_dir():
            monkeypatch.setenv("NODE_PATH", str(KAFKAJS))
            programs.append(node)
        for command in programs:
            assert terminal.type(command).splitlines()[-1].startswith("from ")
        if shutil.which("kcat") is not None:
            records = terminal.type(kcat).splitlines()
            assert sum(line.startswith("from ") for line in records) == len(programs)
        assert terminal.type(ours).count("app-") == 1

        add, more, fewer, bare = users
        assert "security/clients/billing/client.properties" in terminal.type(add)
        wait_for(lambda: "billing" in terminal.type("barnabas users list"), "the user is added")
        terminal.type(more)
        terminal.type(fewer)
        left = terminal.type("barnabas acls list --principal app").upper()
        assert (left.count("CREATE"), left.count("WRITE")) == (0, 2)
        file = "--command-config security/clients/billing/client.properties"
        group = "--group billing-1 --exit-at-end"
        read = terminal.type(f"barnabas consume app-hello --from beginning {group} {file}")
        assert read.count("from ") == len(programs)
        terminal.type(bare)
        wait_for(lambda: "reports" in terminal.type("barnabas users list"), "the user is added")
        for command in (*several, *strict):
            assert "created" in terminal.type(command)
        assert len([*Path("cluster/brokers").iterdir()]) == 4
        assert [terminal.type(command).count("renewed") for command in renewal] == [0, 5]
    finally:
        broker.terminate()
        broker.wait(30)
    exec(in_tests, {})


def test_groups(broker: RunningBroker, terminal: Terminal) -> None:
    fill(broker.bootstrap, "orders", 2, 0)
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number, partition=0)
    terminal.type("barnabas groups reset-offsets billing --topic orders --to 0 --execute")
    assert len(terminal.follow("groups.md")) == 4
    save, delete, hanging = blocks("groups.md", "sh")
    export, restore = lines(save)
    terminal.type(export)
    assert Path("before.csv").read_text() == "orders,0,2\norders,1,0\n"
    terminal.type("barnabas groups reset-offsets billing --topic orders --to latest --execute")
    assert [line.split()[-1] for line in terminal.type(restore).splitlines()[1:]] == ["2", "0"]
    terminal.type(delete)
    assert terminal.type("barnabas groups list").splitlines()[1:] == []
    find, abort = lines(hanging)
    assert len(terminal.type(find).splitlines()) == 1, "none hangs, so there is only a heading"
    assert "no open transaction starts at offset 1500" in terminal.type(abort, code=1)


def test_forks(broker: RunningBroker, terminal: Terminal) -> None:
    fill(broker.bootstrap, "orders", 2, 2000)
    for command in lines(blocks("fork-a-topic.md", "sh")[0]):
        terminal.type(command)
    ends = {
        fork: [partition["latest_offset"] for partition in described(terminal, f"orders-{fork}")]
        for fork in ("test", "friday", "before", "short")
    }
    assert ends["test"] == ends["short"] == [2000, 2000]
    assert ends["friday"] == [0, 0], "there was nothing at that time"
    assert all(1400 < end <= most for end, most in zip(ends["before"], (1500, 1620), strict=True))
    assert "3600000" in terminal.type("barnabas configs describe --topic orders-short")


def test_inspecting_a_log(broker: RunningBroker, terminal: Terminal) -> None:
    fill(broker.bootstrap, "orders", 1, 300)
    refused = terminal.type("barnabas log repair data/orders-0", code=1)
    assert "another broker is using it" in refused
    assert broker.stop() == 0
    dump, verify, repair = blocks("inspect-a-log.md", "sh")
    whole, records, entries, points = [terminal.type(command) for command in lines(dump)]
    assert "data/orders-0/partition.metadata" in whole
    assert sum("value=" in line for line in records.splitlines()) == 300
    assert json.loads(entries.splitlines()[0])["offset"] <= 299
    assert "topic=orders partition=0 offset=300" in points
    assert [terminal.type(command) for command in lines(verify)] == ["no damage found\n"] * 2
    [log] = Path("data/orders-0").glob("*.log")
    with log.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    assert "damage" in terminal.type("barnabas log verify data", code=1)
    would, did = lines(repair)
    size = log.stat().st_size
    terminal.type(would)
    assert log.stat().st_size == size
    terminal.type(did)
    assert log.stat().st_size < size
    assert terminal.type("barnabas log verify data").endswith("no damage found\n")


def test_exporting_and_importing(broker: RunningBroker, terminal: Terminal) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
    fill(broker.bootstrap, "orders", 3, 100)
    assert len(terminal.follow("export.md")) == 3
    assert values(terminal, "orders-again") == values(terminal, "orders")
    assert len(values(terminal, "orders")) == 300


def test_several_disks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (start,) = lines(blocks("use-several-disks.md", "sh")[0])
    disks = {f"/disk{number}": str(tmp_path / f"disk{number}") for number in (1, 2)}
    option, _, directories = start.split()[-1].partition("=")
    for page, here in disks.items():
        directories = directories.replace(page, here)
    broker = start_barnabas(tmp_path / "data", options={option: directories})
    try:
        terminal = Terminal(broker.bootstrap, tmp_path, capfd, monkeypatch)
        fill(broker.bootstrap, "orders", 1, 200)
        assert (tmp_path / "disk1" / "barnabas" / "orders-0").is_dir()
        assert len(terminal.follow("use-several-disks.md", {**disks})) == 2
        assert (tmp_path / "disk2" / "barnabas" / "orders-0").is_dir()
        assert len(values(terminal, "orders")) == 200
    finally:
        broker.stop()


def test_a_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers 1 to 4 of the page are 0 to 3 of a cluster in this process."""
    first, lost, back, moves = [[*typed(block)] for block in blocks("cluster.md", "console")]
    racks = ("rack-1", "rack-2", "rack-3", "rack-2")
    with Cluster(brokers=4, racks=racks, options={"min.insync.replicas": 2}) as cluster:
        terminal = Terminal(cluster.bootstrap, tmp_path, capfd, monkeypatch)
        cluster.stop(3)

        def shows(command: str, shown: str) -> None:
            assert form(terminal.type(command)) == form(shown), command

        def incomplete() -> list[Any]:
            words = "barnabas topics describe --under-replicated --json"
            topics: list[Any] = json.loads(terminal.type(words))
            return topics

        ids = "barnabas cluster describe --json"
        wait_for(lambda: len(json.loads(terminal.type(ids))["brokers"]) == 3, "three brokers")
        for command, shown in first[1:]:
            if "cluster describe" in command:  # which of them is the controller differs
                assert sorted(form(terminal.type(command))) == sorted(form(shown))
            elif "produce" in command:  # the partitions that get something differ
                told, _, places = terminal.type(command).partition(": ")
                assert form(told) == form(shown.partition(": ")[0])
                assert form(shown)[0].endswith(form(places)[0])
            else:
                shows(command, shown)

        cluster.kill(1)
        wait_for(
            lambda: (
                [
                    partition["leader"] not in (1, -1) and len(partition["isr"]) == 2
                    for topic in incomplete()
                    for partition in topic["partitions"]
                ]
                == [True] * 3
            ),
            "others lead",
        )
        for command, shown in lost[1:]:
            shows(command, shown)
        cluster.start(1)
        wait_for(lambda: not incomplete(), "all are in sync")
        for command, shown in back:
            shows(command, shown)

        cluster.start(3)
        wait_for(lambda: len(json.loads(terminal.type(ids))["brokers"]) == 4, "four brokers")
        propose, (execute, started), (look, moving), wait = moves[1:]
        shows(propose[0].replace("1,3,4", "0,2,3"), propose[1])
        slow, quick = (execute.replace("200000", bound) for bound in ("1000", "1000000000"))
        assert form(terminal.type(slow))[-1] == form(started)[-1]
        header, *rows = form(terminal.type(look, code=1))
        assert [header, *(row.rsplit(" ", 1)[0] for row in rows)] == [
            form(moving)[0],
            *(row.rsplit(" ", 1)[0] for row in form(moving)[1:]),
        ]
        terminal.type(f"{quick} --additional")
        shows(*wait)


def test_mirroring(broker: RunningBroker, terminal: Terminal, tmp_path: Path) -> None:
    """The commands about Spark aside: its engine is told from this one by its options alone."""
    target = start_barnabas(tmp_path / "target")
    try:
        places = {"old:9092": broker.bootstrap, "new:9092": target.bootstrap}
        fill(broker.bootstrap, "orders", 6, 50)
        fill(broker.bootstrap, "payments", 3, 50)
        terminal.type(
            "barnabas groups reset-offsets shop-mailer --topic orders:0 --to 20 --execute"
        )
        first, files, _, groups = [[*typed(block)] for block in blocks("mirror.md", "console")]

        def run(command: str, *more: str) -> list[str]:
            for page, here in places.items():
                command = command.replace(page, here)
            return form(
                terminal.type(" ".join([command, *more])).replace("\nbarnabas mirror: ", "\n")
            )

        ((command, shown),) = first
        assert run(command, "--until-caught-up") == form(shown.replace("\nbarnabas mirror: ", "\n"))
        ((command, shown),) = groups
        assert run(command) == form(shown)
        Path("source.properties").write_text(f"bootstrap.servers={broker.bootstrap}\n")
        Path("target.properties").write_text(f"bootstrap.servers={target.bootstrap}\n")
        ((command, _),) = files
        (line,) = run(command, "--until-caught-up")
        assert line.startswith("barnabas mirror: 0 records of 0 topics")
        target_has = terminal.type(
            f"barnabas consume orders --exit-at-end --bootstrap {target.bootstrap}"
        )
        assert sorted(target_has.splitlines()) == values(terminal, "orders")
    finally:
        target.stop()


def test_testing_with_a_broker(tmp_path: Path) -> None:
    """The page's tests are run as those of another project, its programs as they stand."""
    # Those in between are whole files, which test_testing_examples.py runs.
    fixtures, breaking, *_, plain, restarting, cutting, secured = blocks(
        "test-with-barnabas.md", "python"
    )
    options, _ = blocks("test-with-barnabas.md", "text")
    given = """
from barnabas import KafkaConsumer, KafkaProducer

def write_some(bootstrap):
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send("kept", b"a record").get(60)
        assert len(producer.partitions_for("kept")) in (1, 3)

def check_all(bootstrap):
    with KafkaConsumer("kept", bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        assert next(reader).value == b"a record"
"""
    (tmp_path / "test_orders.py").write_text(given + breaking + fixtures)
    words = options.split()
    assert words.pop(0) == "pytest"
    words[words.index("auto.create.topics.enable=false")] = "auto.create.topics.enable=true"
    words += ["-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_orders.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    names: dict[str, Any] = {}
    exec(given, names)
    exec(plain, names)
    exec(restarting, names)
    exec(cutting, names)
    exec(secured, names)


def test_kafkas_tools(
    broker: RunningBroker,
    terminal: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, installed = blocks("kafka-tools.md", "sh")
    made, shown = [terminal.type(line) for line in lines(plain)]
    assert made == "Created topic quickstart-events.\n"
    assert shown.startswith("Topic: quickstart-events\tTopicId: ")
    install, path, produce, *rest = lines(installed)
    assert terminal.type(install).startswith("wrote ")
    assert path == "export PATH=$PWD/bin:$PATH"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert terminal.type(produce) == ""
    read, offsets, groups = [terminal.type(line) for line in rest]
    assert read == "k1\tfirst\nProcessed a total of 1 messages\n"
    assert offsets == "quickstart-events:0:1\n"
    assert "Error" not in groups
    ((misspelt, said),) = typed(blocks("kafka-tools.md", "console")[0])
    assert terminal.type(misspelt, code=1) == said

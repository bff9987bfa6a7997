"""Every command ends by its last line and 130 on Ctrl-C, wherever it is, and leaves nothing behind.

A run that is left alone is measured in calls of functions; then signals come at calls that are
spread over it. `BARNABAS_INTERRUPTIONS` says at how many; 3 unless it is set, and Spark then starts
only for the moments that matter most.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from tests.system.mirroring import command as mirror_command
from tests.system.mirroring import create, send, some_shapes
from tests.system.signals import Ended, run_with_signals
from tests.system.standalone import DEADLINE_S, hear_interrupts
from tests.unit.cli.secured import secured_broker
from tests.zookeeper import zookeeper, zookeeper_classpath  # noqa: F401  fixtures

from barnabas.cli.main import COMMANDS
from barnabas.testing import Cluster
from barnabas.testing.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

MOMENTS = int(os.environ.get("BARNABAS_INTERRUPTIONS", "3"))
IS_LONG = "BARNABAS_INTERRUPTIONS" in os.environ
RECORDS = 300
TOPIC = "interrupted"
BROKEN = re.compile(r"Traceback|Exception|Warning|never awaited|destroyed", re.IGNORECASE)


class World(NamedTuple):
    """What commands work on; what they make has a new name for each."""

    source: str
    target: str
    folder: Path
    numbers: Iterator[int]
    secured: str
    """Client options for a broker that authenticates its clients, as tokens require."""
    zookeeper: str = ""
    """A ZooKeeper server, where a test has asked for one."""

    def new(self, name: str) -> str:
        return str(self.folder / f"{next(self.numbers)}-{name}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("interruptions")
    open_to_all = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    (folder / "secured").mkdir()
    with (
        Cluster(options=open_to_all) as source,
        Cluster() as target,
        secured_broker(folder / "secured") as secured,
    ):
        create(source.bootstrap, TOPIC, 2)
        for partition in range(2):
            send(source.bootstrap, TOPIC, partition, some_shapes(Random(partition), RECORDS))
        create(source.bootstrap, "produced", 1)
        (folder / "lines.csv").write_text("value\none\ntwo\n")
        client = secured.file(secured.options())
        yield World(source.bootstrap, target.bootstrap, folder, count(), client)


# For each command what is run, and what the last line may be beside that it was interrupted.

Make = Callable[[World], Sequence[str]]


class Case(NamedTuple):
    """A command line that ends by itself."""

    make: Make
    own_line: str = r"(?!)"
    serves: bool = False
    without_java: bool = False


def on_source(*words: str) -> Make:
    return lambda world: [*words, "--bootstrap", world.source]


def mirror(world: World) -> Sequence[str]:
    name = f"mirror-{next(world.numbers)}"
    words = mirror_command(world.source, world.target, "--topics", TOPIC, "--name", name)[3:]
    return [*words, "--until-caught-up"]


def demo(world: World) -> Sequence[str]:
    return ["demo", "--port", "0", "--seconds", "0.5", "--data-dir", world.new("demo")]


CASES = {
    "start": Case(
        lambda world: ["start", "--listen", "127.0.0.1:0", "--data-dir", world.new("broker")],
        "Barnabas (stopped cleanly|was stopped before it was ready)",
        serves=True,
    ),
    "topics": Case(on_source("topics", "describe", TOPIC)),
    "configs": Case(on_source("configs", "describe", "--topic", TOPIC)),
    "produce": Case(
        lambda world: [
            *("produce", "produced", "--file", str(world.folder / "lines.csv")),
            *("--bootstrap", world.source),
        ],
        r"\d records sent to produced in .*",
    ),
    "consume": Case(on_source("consume", TOPIC, "--exit-at-end", "--format", "%o\n")),
    "log": Case(lambda world: ["log", "verify", str(world.folder)]),
    "groups": Case(on_source("groups", "list")),
    "acls": Case(on_source("acls", "list")),
    "users": Case(on_source("users", "list")),
    "tokens": Case(lambda world: ["tokens", "list", "--command-config", world.secured]),
    "security": Case(lambda world: ["security", "init", world.new("security")]),
    "zookeeper-security": Case(
        lambda world: [
            *("zookeeper-security", "unsecure", "--zookeeper", world.zookeeper),
            *("--set", "barnabas.zookeeper.credentials=user:password"),
        ]
    ),
    "quotas": Case(on_source("quotas", "list")),
    "clients": Case(on_source("clients", "metrics")),
    "why": Case(on_source("why", "topic", TOPIC)),
    "diary": Case(on_source("diary")),
    "top": Case(on_source("top", "--once", "--interval", "0.05")),
    "transactions": Case(on_source("transactions", "list")),
    "cluster": Case(on_source("cluster", "describe")),
    "reassign": Case(on_source("reassign", "list")),
    "elect": Case(on_source("elect", "--topic", TOPIC)),
    "mirror": Case(mirror, r"barnabas mirror: \d+ records of 1 topic, .*", serves=True),
    "pipeline": Case(lambda world: ["pipeline", "init", world.new("project")]),
    "demo": Case(
        demo, r"stopped; \d+ clicks sent, 0 counts received", serves=True, without_java=True
    ),
    "sql": Case(on_source("sql", f"select count(*) from {TOPIC}")),
    "export": Case(
        lambda world: ["export", TOPIC, world.new("all.csv"), "--bootstrap", world.source],
        rf"{2 * RECORDS} records in 1 file, .*",
    ),
    "perf": Case(on_source("perf", "produce", "produced", "--records", "1000")),
    "doctor": Case(on_source("doctor")),
    "completion": Case(lambda world: ["completion", "bash"]),
    "tools": Case(lambda world: ["tools", "install", world.new("tools")]),
    "import": Case(
        lambda world: [
            *("import", str(world.folder / "lines.csv"), "produced"),
            *("--bootstrap", world.source),
        ],
        "2 records of 1 file, .*",
    ),
}


def test_all_commands_are_tried() -> None:
    assert set(CASES) == {command.name for command in COMMANDS}


def run_case(
    name: str, world: World, at: Sequence[int | str], number: signal.Signals = signal.SIGINT
) -> Ended:
    case = CASES[name]
    return run_with_signals(
        case.make(world),
        world.folder / f"told-{name}",
        at,
        number=number,
        environment={"JAVA_HOME": str(world.folder)} if case.without_java else None,
    )


def length_of(name: str, world: World) -> int:
    """Return how many calls a run makes that is left alone; a broker's, until it has started."""
    alone = run_case(name, world, ["barnabas.cli.start:_unless"] if name == "start" else [])
    assert alone.code == (130 if name == "start" else 0), alone
    assert alone.calls is not None
    return alone.calls


@pytest.mark.parametrize("name", CASES)
def test_a_command_ends_wherever_it_is(
    name: str, world: World, request: pytest.FixtureRequest
) -> None:
    if name == "zookeeper-security":
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        world = world._replace(zookeeper=server.address)
    random = Random(name)
    calls = length_of(name, world)
    reached = 0
    for number in range(MOMENTS):
        moment = 1 + int((number + random.random()) / MOMENTS * calls)
        ended = run_case(name, world, [moment])
        reached += ended.sent
        told = f"at call {moment} of {calls}: {ended}"
        # A run may be a few calls shorter than the first one.
        assert ended.code == (130 if ended.sent else 0), told
        assert not BROKEN.search(ended.err + ended.out), told
        if ended.sent:
            line = rf"barnabas {name}: interrupted|{CASES[name].own_line}"
            assert ended.closes_with(line), told
    assert reached > MOMENTS // 2


@pytest.mark.parametrize("name", ["consume", "mirror", "start"])
def test_sigterm_ends_it_as_well(name: str, world: World) -> None:
    calls = length_of(name, world)
    serves = CASES[name].serves
    for moment, codes in ((1, (143,)), (calls * 49 // 50, (0,) if serves else (143,))):
        ended = run_case(name, world, [moment], signal.SIGTERM)
        assert (ended.sent, ended.code in codes) == (1, True), f"at call {moment}: {ended}"
        assert not BROKEN.search(ended.err), ended
        line = rf"barnabas {name}: terminated|{CASES[name].own_line}"
        assert ended.closes_with(line), ended


def test_while_a_child_is_started(world: World) -> None:
    """The broker of the demo is in a process group of its own, and must not be forgotten."""
    ended = run_case("demo", world, ["audit:subprocess.Popen"])
    assert (ended.sent, ended.code, ended.err) == (1, 130, ""), ended
    assert ended.closes_with("stopped; 0 clicks sent, 0 counts received"), ended


@pytest.mark.parametrize("patience_s", [0.0, 60.0])
def test_twice(world: World, patience_s: float) -> None:
    """Whoever has no patience leaves at once; children are ended in any case."""
    ended = run_with_signals(
        demo(world),
        world.folder / "told-twice",
        ["barnabas.cli.demo:_head", "audit:os.kill"],
        patience_s=patience_s,
        environment={"JAVA_HOME": str(world.folder)},
    )
    assert (ended.sent, ended.code) == (2, 130), ended
    assert not BROKEN.search(ended.err + ended.out), ended
    if patience_s:
        assert ended.closes_with(CASES["demo"].own_line), ended
    else:
        assert ended.closes_with("barnabas demo: interrupted"), ended


def test_on_a_terminal(world: World) -> None:
    """Ctrl-C is typed while a line is drawn; the cursor is there again afterwards."""
    words = mirror_command(world.source, world.target, "--topics", TOPIC, "--name", "typed")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: (hear_interrupts(), _own_terminal()),
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    try:
        said = b""
        while (found := _read(ours, said)) is not None:
            said = found
            if b"lag 0" in said:
                os.write(ours, b"\x03")
                break
        while (found := _read(ours, said)) is not None:
            said = found
        assert process.wait(DEADLINE_S) == 130, said
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    lines = said.decode().splitlines()
    last = [line for line in lines if "barnabas mirror: " in line][-1]
    assert re.search(rf"{2 * RECORDS} records of 1 topic, .* lag 0", last), said
    assert not BROKEN.search(said.decode()), said
    assert said.rfind(b"\x1b[?25h") > said.rfind(b"\x1b[?25l") >= 0, said


def _own_terminal() -> None:
    """Make stdin the terminal of this session, so that what is typed there reaches the group."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(descriptor: int, said: bytes) -> bytes | None:
    """Return what was said so far and is said now; None at the end."""
    ready, _, _ = select.select([descriptor], [], [], DEADLINE_S)
    assert ready, said
    try:
        found = os.read(descriptor, 4096)
    except OSError:  # how a terminal ends that no process has any more
        return None
    return said + found if found else None


def test_with_a_reader_that_is_gone(world: World) -> None:
    """As in `barnabas mirror --json | tee file`, where Ctrl-C ends tee first."""
    words = mirror_command(world.source, world.target, "--topics", TOPIC, "--name", "unread")
    process = subprocess.Popen(
        [*words, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(DEADLINE_S) == 130, said
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    created = b"barnabas mirror: created topic interrupted with 2 partitions\n"
    # The first mirror to this target has to create the topic.
    assert said.removeprefix(created) == b"barnabas mirror: interrupted\n"


# Spark, whose JVM and Python processes a terminal's Ctrl-C reaches as well.


def mirror_on_spark(world: World) -> Sequence[str]:
    return [*mirror(world), "--master", "local[2]", "--conf", "spark.driver.memory=512m"]


def sql_on_spark(world: World) -> Sequence[str]:
    return [*CASES["sql"].make(world), "--master", "local[2]"]


def pipeline_on_spark(world: World) -> Sequence[str]:
    """Return what runs a pipeline on topics of its own, which are made first."""
    project = world.new("project")
    options = ["--bootstrap", world.source]
    subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "pipeline", "init", project, *options],
        check=True,
        capture_output=True,
    )
    for topic in ("clicks", "page-counts", "clicks-dead-letters"):
        subprocess.run(  # fails where an earlier one has made it
            [sys.executable, "-m", "barnabas.cli", "topics", "create", topic, *options],
            check=False,
            capture_output=True,
        )
    return ["pipeline", "run", project, "--master", "local[2]"]


ON_SPARK = [
    # The JVM is up, and the driver is being made.
    ("mirror", mirror_on_spark, "pyspark.core.context:_do_init", False),
    ("mirror", mirror_on_spark, "barnabas.spark.session:_stop", False),
    ("mirror", mirror_on_spark, "audit:subprocess.Popen", True),
    ("mirror", mirror_on_spark, "pyspark.java_gateway:launch_gateway", True),
    ("mirror", mirror_on_spark, "barnabas.spark.session:hush", True),
    ("sql", sql_on_spark, "audit:subprocess.Popen", True),
    ("sql", sql_on_spark, "pyspark.sql.classic.dataframe:toArrow", True),
    ("sql", sql_on_spark, "barnabas.spark.session:close_session", True),
    ("pipeline", pipeline_on_spark, "audit:subprocess.Popen", True),
    ("pipeline", pipeline_on_spark, "pyspark.core.context:_do_init", True),
    ("pipeline", pipeline_on_spark, "barnabas.pipeline.engine:_connect", True),
    ("pipeline", pipeline_on_spark, "barnabas.pipeline.run:_update", True),
    ("pipeline", pipeline_on_spark, "barnabas.pipeline.engine:_ask_to_stop", True),
]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("name", "make", "moment"),
    [
        pytest.param(name, make, moment, id=f"{name}-{moment}")
        for name, make, moment, only_long in ON_SPARK
        if IS_LONG or not only_long
    ],
)
def test_spark_ends_with_its_command(name: str, make: Make, moment: str, world: World) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    ended = run_with_signals(make(world), world.folder / "told-spark", [moment], group=True)
    assert ended.sent == 1, ended
    assert ended.code == 130, ended
    assert not BROKEN.search(ended.err + ended.out), ended
    line = rf"barnabas {name}: interrupted|{CASES[name].own_line}|\w+: \w+, \d+ rows.*"
    assert ended.closes_with(line), ended

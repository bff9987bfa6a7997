"""Apache Kafka's own command line tools, of two releases, pointed at the broker under test.

Needs Java, and Maven the first time; where they are missing the tests skip and say so.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator

import pytest
from tests.interop.doors import Doors, open_doors
from tools.apache_kafka import RELEASES, Distribution, Unavailable
from tools.compatibility import Result

pytest.register_assert_rewrite("tests.interop.framework_runs")

Tool = Callable[..., str]
Compatibility = Callable[[str, str, str], None]


@pytest.fixture(scope="session", params=sorted(RELEASES))
def kafka(request: pytest.FixtureRequest) -> Distribution:
    """One release of Apache Kafka's tools."""
    try:
        return Distribution.fetch(request.param)
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def tool(kafka: Distribution, bootstrap: str) -> Tool:
    """Run a tool against the broker to its end and return what it printed."""

    def run(name: str, *arguments: str, input: str | None = None, code: int = 0) -> str:
        done = kafka.run(name, "--bootstrap-server", bootstrap, *arguments, input=input)
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return done.stdout if code == 0 else output

    return run


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic name of the test's own (each worker has a broker of its own)."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"interop.{request.node.name}").rstrip("-")


@pytest.fixture(scope="session")
def apache_bootstrap(
    kafka: Distribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of an Apache Kafka of this release, whose groups may be quick."""
    options = {
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.min.session.timeout.ms": "1000",
        "transaction.state.log.num.partitions": "4",
        "offsets.topic.num.partitions": "4",
    }
    data_dir = tmp_path_factory.mktemp(f"apache-{kafka.release}") / "data"
    broker = kafka.start(data_dir, options=options, heap="512m")
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """An Apache Kafka 3.9 whose listeners ask for certificates, passwords and tokens."""
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    with open_doors(kafka, tmp_path_factory.mktemp("doors")) as opened:
        yield opened


_shown = pytest.StashKey[Result]()


@pytest.fixture
def compatibility(request: pytest.FixtureRequest) -> Compatibility:
    """Name the client that the test runs; its result is a row of docs/compatibility.md."""
    ran = inspect.cleandoc(request.function.__doc__ or "").partition("\n\n")[0]
    assert ran, "the docstring says what was run and asserted"

    def name_client(client: str, version: str, language: str) -> None:
        request.node.stash[_shown] = Result(
            client, version, language, " ".join(ran.split()), request.node.name
        )

    return name_client


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the results of tests that have named a client; one that skips keeps the last one."""
    report = yield
    result = item.stash.get(_shown, None)
    ours = item.config.getoption("--broker") == "barnabas"
    if result is not None and ours and call.when == "call":
        if report.passed:
            result.write("passed")
        elif report.failed:
            result.write("failed")
        elif hasattr(report, "wasxfail"):
            result.write(f"missing: {report.wasxfail}")
    return report

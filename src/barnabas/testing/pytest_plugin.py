"""Fixtures for every project that tests against Kafka: real brokers for the test session.

    def test_orders(barnabas_bootstrap):
        producer = KafkaProducer(bootstrap_servers=barnabas_bootstrap)

    def test_a_dead_broker(barnabas_clusters):
        with barnabas_clusters(brokers=3) as cluster:
            cluster.kill(1)

    @pytest.mark.barnabas(brokers=3, options={"default.replication.factor": 3})
    @pytest.mark.barnabas_kill(1, after_records=100)
    def test_orders_survive(barnabas_own_cluster):
        producer = KafkaProducer(bootstrap_servers=barnabas_own_cluster.bootstrap, acks="all")

`pytest --barnabas-brokers 3` gives the session's cluster three brokers, and
`--barnabas-option auto.create.topics.enable=false` sets options of all of them. With
`--barnabas-security sasl_ssl`, clients must log in: `barnabas_client_options` has the options of an
administrator, and `barnabas_cluster.add_user` adds others. The cluster starts when the first test
requests it, and its data is removed at the end; `--barnabas-scope module` (or class, function)
gives each of these a cluster of its own.

A test that stops brokers should have its own cluster: `barnabas_own_cluster` is one, as the mark
`barnabas` describes it, and has the faults of other marks; `barnabas_clusters` creates as many as a
test wants. When a test fails, the report shows the topics that got records since it began, with
their last records, and the positions of groups (`--barnabas-records 0` turns that off). Nothing
else is imported until a cluster is requested.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.faults import Fault

MARKS = (
    "barnabas(brokers=1, options=None, **more): the cluster of barnabas_own_cluster, as the"
    " arguments of barnabas.testing.Cluster describe it",
    "barnabas_kill(broker, after_records=0, for_s=None): kill a broker of barnabas_own_cluster"
    " once clients have sent so many records, for some seconds or until the test ends",
    "barnabas_stop(broker, after_records=0, for_s=None): shut a broker down in order",
    "barnabas_isolate(broker, clients_only=False, after_records=0, for_s=None): drop all traffic"
    " of a broker with clients and other brokers",
    "barnabas_partition(one, other, one_way=False, after_records=0, for_s=None): drop all traffic"
    " between two brokers",
    "barnabas_slow(latency_ms, broker=None, after_records=0, for_s=None): have all traffic of a"
    " broker, or of all, take longer",
)
SCOPES = ("session", "package", "module", "class", "function")
_began_ms = pytest.StashKey[int]()
_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options to pytest's own."""
    group = parser.getgroup("barnabas")
    group.addoption(
        "--barnabas-brokers",
        type=int,
        default=1,
        metavar="N",
        help="number of brokers of barnabas_cluster (default: 1)",
    )
    group.addoption(
        "--barnabas-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a broker option for barnabas_cluster; may be repeated",
    )
    group.addoption(
        "--barnabas-security",
        default=None,
        metavar="PROTOCOL",
        help="security protocol of barnabas_cluster: sasl_ssl, sasl_plaintext or ssl",
    )
    group.addoption(
        "--barnabas-scope",
        choices=SCOPES,
        default="session",
        help="how long a barnabas_cluster lives: for all tests, or for those of a package, module"
        " or class, or for one (default: session)",
    )
    group.addoption(
        "--barnabas-records",
        type=int,
        default=10,
        metavar="N",
        help="how many records of each topic the report of a failed test shows (default: 10;"
        " 0: no report)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare our marks."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reject marks that would have no effect."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for mark in item.iter_markers():
            if mark.name.startswith("barnabas") and "barnabas_own_cluster" not in fixtures:
                raise pytest.UsageError(
                    f"{item.nodeid}: the mark {mark.name} needs the fixture barnabas_own_cluster"
                )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when the test began."""
    item.stash[_began_ms] = int(time.time() * 1000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what is in the clusters to the report of a test that failed."""
    report = yield
    if report.failed and call.when != "teardown":
        item.stash[_failed] = True
        last = item.config.getoption("--barnabas-records")
        if last > 0:
            report.sections += _contents(last, item.stash.get(_began_ms, 0))
    return report


def _contents(last: int, since_ms: int) -> Iterator[tuple[str, str]]:
    """Describe the running clusters of this process that got records since a time."""
    module = sys.modules.get("barnabas.testing.cluster")
    for cluster in sorted(module.RUNNING, key=lambda each: each.bootstrap) if module else ():
        from barnabas.testing.recorder import describe_cluster

        text = describe_cluster(cluster, last=last, since_ms=since_ms)
        if text:
            yield f"Barnabas at {cluster.bootstrap}", text


def options_of(texts: Iterable[str]) -> dict[str, str]:
    """Parse the values of `--barnabas-option`."""
    options: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise pytest.UsageError(f"--barnabas-option {text!r} is not of the form NAME=VALUE")
        options[name] = value
    return options


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    return config.getoption("--barnabas-scope")


@pytest.fixture(scope=_scope)
def barnabas_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster, one for the whole session unless `--barnabas-scope` is given."""
    brokers = request.config.getoption("--barnabas-brokers")
    security = request.config.getoption("--barnabas-security")
    with _new(request.config)(brokers, security=security) as cluster:
        yield cluster


@pytest.fixture
def barnabas_own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster for one test: as its mark `barnabas` says, with the faults of its marks.

    It has the brokers and options of the command line, unless the mark has others, and at least as
    many brokers as its faults name. A fault that did not happen fails a test that passed otherwise.
    """
    faults = list(_faults_of(request.node))
    named = max((fault.brokers_min for fault in faults), default=1)
    brokers = max(request.config.getoption("--barnabas-brokers"), named)
    given: dict[str, Any] = {"brokers": brokers, "wired": bool(faults)}
    mark = request.node.get_closest_marker("barnabas")
    if mark is not None:
        given |= dict(zip(("brokers", "options"), mark.args, strict=False)) | mark.kwargs
    if given["brokers"] < named:
        raise pytest.UsageError(
            f"{request.node.nodeid}: mark barnabas: brokers={given['brokers']}: must be at least"
            f" {named}, because a fault names broker {named - 1}"
        )
    with _new(request.config)(**given) as cluster:
        if not faults:
            yield cluster
            return
        from barnabas.testing.faults import FaultPlan

        plan = FaultPlan(cluster, faults)
        yield cluster
        missed = plan.finish()
        if missed and not request.node.stash.get(_failed, False):
            pytest.fail("\n".join(missed), pytrace=False)


def _faults_of(item: pytest.Item) -> Iterator[Fault]:
    for mark in item.iter_markers():
        kind = mark.name.removeprefix("barnabas_")
        if kind != mark.name:
            from barnabas.model.errors import InvalidValueError
            from barnabas.testing.faults import FAULTS

            if kind not in FAULTS:
                known = ", ".join(f"barnabas_{name}" for name in FAULTS)
                raise pytest.UsageError(f"{item.nodeid}: mark {mark.name}: must be one of {known}")
            try:
                yield FAULTS[kind](*mark.args, **mark.kwargs)
            except (TypeError, InvalidValueError) as failure:
                raise pytest.UsageError(f"{item.nodeid}: mark {mark.name}: {failure}") from None


@pytest.fixture
def barnabas_clusters(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Create clusters for one test: like `Cluster`, with the options of the command line.

    Clusters that are still open when the test ends are closed.
    """
    made: list[Cluster] = []
    new = _new(request.config)

    def make(brokers: int = 1, **more: Any) -> Cluster:
        made.append(new(brokers, **more))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


def _new(config: pytest.Config) -> Callable[..., Cluster]:
    """Return a factory of clusters with the options of the command line."""
    from barnabas.testing.cluster import Cluster

    given = options_of(config.getoption("--barnabas-option"))

    def new(brokers: int, options: Mapping[str, object] | None = None, **more: Any) -> Cluster:
        return Cluster(brokers, {**given, **(options or {})}, **more)

    return new


@pytest.fixture(scope=_scope)
def barnabas_bootstrap(barnabas_cluster: Cluster) -> str:
    """The address of the cluster, for bootstrap.servers."""
    return barnabas_cluster.bootstrap


@pytest.fixture(scope=_scope)
def barnabas_client_options(barnabas_cluster: Cluster) -> dict[str, Any]:
    """Options of an administrator, by Kafka's names; without security, the address alone."""
    return barnabas_cluster.client_options()

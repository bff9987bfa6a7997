"""Fixtures for every project that tests against Kafka: real brokers for the test session.

    def test_orders(barnabas_bootstrap):
        producer = KafkaProducer(bootstrap_servers=barnabas_bootstrap)

    def test_a_dead_broker(barnabas_clusters):
        with barnabas_clusters(brokers=3) as cluster:
            cluster.kill(1)

`pytest --barnabas-brokers 3` gives the session's cluster three brokers, and
`--barnabas-option auto.create.topics.enable=false` sets options of all of them. With
`--barnabas-security sasl_ssl`, clients must log in: `barnabas_client_options` has the options of an
administrator, and `barnabas_cluster.add_user` adds others. The cluster starts when the first test
requests it, and its data is removed at the end. A test that stops brokers should have its own
cluster: `barnabas_clusters` creates them, with the same options. Nothing else is imported until
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster


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


def options_of(texts: Iterable[str]) -> dict[str, str]:
    """Parse the values of `--barnabas-option`."""
    options: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise pytest.UsageError(f"--barnabas-option {text!r} is not of the form NAME=VALUE")
        options[name] = value
    return options


@pytest.fixture(scope="session")
def barnabas_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster, one for the whole session."""
    brokers = request.config.getoption("--barnabas-brokers")
    security = request.config.getoption("--barnabas-security")
    with _new(request.config)(brokers, security=security) as cluster:
        yield cluster


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


@pytest.fixture(scope="session")
def barnabas_bootstrap(barnabas_cluster: Cluster) -> str:
    """The address of the cluster, for bootstrap.servers."""
    return barnabas_cluster.bootstrap


@pytest.fixture(scope="session")
def barnabas_client_options(barnabas_cluster: Cluster) -> dict[str, Any]:
    """Options of an administrator, by Kafka's names; without security, the address alone."""
    return barnabas_cluster.client_options()

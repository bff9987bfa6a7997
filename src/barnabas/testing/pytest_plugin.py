"""Fixtures for every project that tests against Kafka: a real broker for the test session.

    def test_orders(barnabas_bootstrap):
        producer = KafkaProducer(bootstrap_servers=barnabas_bootstrap)

`pytest --barnabas-option auto.create.topics.enable=false` sets options of the broker. It starts
when the first test asks for it, and its data is removed at the end. Nothing else is imported
until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options to pytest's own."""
    parser.getgroup("barnabas").addoption(
        "--barnabas-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the broker behind barnabas_cluster; may be repeated",
    )


def options_of(texts: Iterable[str]) -> dict[str, str]:
    """Read options as they are typed after `--barnabas-option`."""
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
    from barnabas.testing.cluster import Cluster

    with Cluster(options=options_of(request.config.getoption("--barnabas-option"))) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def barnabas_bootstrap(barnabas_cluster: Cluster) -> str:
    """The address of the cluster, for bootstrap.servers."""
    return barnabas_cluster.bootstrap

"""Fixtures of tests that attack a broker: one in this process, whose log is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.system.spark_session import jvm, quick_java, spark, worker_code  # noqa: F401
from tests.system.standalone import standalone  # noqa: F401
from tests.unit.broker.serving import Serving
from tests.zookeeper import chroots, zookeeper, zookeeper_classpath  # noqa: F401


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A broker for all tests of a module; each of them leaves its log empty."""
    with Serving(tmp_path_factory.mktemp("data"), {"num.partitions": 2}) as running:
        yield running

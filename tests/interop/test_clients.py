"""Our clients against a real Apache Kafka, of two releases: the tests of tests/compat again."""

from __future__ import annotations

import pytest
from tests.compat.conftest import new_name  # noqa: F401
from tests.compat.test_clients import *  # noqa: F403
from tools.apache_kafka import Distribution

pytestmark = pytest.mark.interop


@pytest.fixture(scope="session")
def bootstrap(apache_bootstrap: str) -> str:
    return apache_bootstrap


@pytest.fixture(scope="session")
def serves_consumer_protocol(kafka: Distribution) -> bool:
    """Groups of KIP-848 are ready for use since 4.0."""
    return kafka.release != "3.9"

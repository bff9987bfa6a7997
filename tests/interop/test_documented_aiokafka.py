"""What aiokafka documents, with our clients against a real Apache Kafka, of two releases."""

from __future__ import annotations

import pytest
from tests.compat.conftest import new_name  # noqa: F401
from tests.compat.test_documented_aiokafka import *  # noqa: F403
from tests.compat.test_documented_aiokafka import Library

pytestmark = pytest.mark.interop


@pytest.fixture(scope="session")
def bootstrap(apache_bootstrap: str) -> str:
    return apache_bootstrap


@pytest.fixture
def library() -> Library:
    return Library("barnabas.aio", "barnabas.errors")

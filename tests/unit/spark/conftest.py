"""A broker for tests of what tasks do; those of decisions need none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from barnabas import KafkaAdminClient
from barnabas.admin import NewTopic
from barnabas.testing import Cluster

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster(options={"log.cleaner.backoff.ms": 100}) as cluster:
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as client:
        yield client


@pytest.fixture
def new_topic(admin: KafkaAdminClient) -> Callable[..., str]:
    def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(NUMBERS)}"
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        return name

    return make

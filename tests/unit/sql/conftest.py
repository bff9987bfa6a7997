"""A broker with topics to ask, and the command that asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import pytest
from tests.unit.cli.conftest import barnabas  # noqa: F401

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic

_numbers = itertools.count()

Fill = Callable[..., str]


@pytest.fixture
def fill(barnabas_bootstrap: str) -> Fill:
    """Make a topic of two partitions with values, which go to them in turn."""

    def make(values: Iterable[bytes | None], name: str = "", **options: object) -> str:
        topic = name or f"sql_{next(_numbers)}"
        with KafkaAdminClient(bootstrap_servers=barnabas_bootstrap) as admin:
            admin.create_topics([NewTopic(topic, 2, 1)])
        with KafkaProducer(bootstrap_servers=barnabas_bootstrap) as producer:
            for number, value in enumerate(values):
                producer.send(
                    topic,
                    value,
                    key=b"k%d" % number,
                    partition=number % 2,
                    timestamp_ms=1_700_000_000_000 + 60_000 * number,
                    **options,  # type: ignore[arg-type]
                )
            producer.flush()
        return topic

    return make

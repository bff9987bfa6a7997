"""A task reads its ranges and nothing beyond, whatever lies between the records."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas import KafkaAdminClient, KafkaProducer, TopicPartition  # noqa: E402
from barnabas.spark.errors import DataLossError, StalledError  # noqa: E402
from barnabas.spark.plan import Range  # noqa: E402
from barnabas.spark.reading import read_ranges  # noqa: E402


def read(
    bootstrap: str, *ranges: Range, fails_on_loss: bool = True, patience_ms: float = 30_000
) -> list[tuple[str, int, int, bytes]]:
    client = {
        "bootstrap.servers": bootstrap,
        "auto.offset.reset": "none",
        "isolation.level": "read_committed",
    }
    batches = read_ranges(client, ranges, fails_on_loss=fails_on_loss, patience_ms=patience_ms)
    return [
        (row["topic"], row["partition"], row["offset"], row["value"])
        for batch in batches
        for row in batch.to_pylist()
    ]


@pytest.fixture
def filled(bootstrap: str, new_topic: Callable[[int], str]) -> str:
    """A topic with offsets 0 to 99 in each of two partitions."""
    topic = new_topic(2)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(200):
            producer.send(topic, b"%d" % number, partition=number % 2)
    return topic


def test_ranges_are_read_and_nothing_beyond(bootstrap: str, filled: str) -> None:
    found = read(
        bootstrap,
        Range(filled, 0, 10, 20),
        Range(filled, 0, 50, 52),
        Range(filled, 1, 97, 100),
    )
    assert sorted(found) == [
        *((filled, 0, offset, b"%d" % (2 * offset)) for offset in (*range(10, 20), 50, 51)),
        *((filled, 1, offset, b"%d" % (2 * offset + 1)) for offset in (97, 98, 99)),
    ]


def test_no_range_asks_nobody(bootstrap: str) -> None:
    assert read("127.0.0.1:1") == []


def test_a_range_may_end_in_control_and_aborted_records(
    bootstrap: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number, ending in enumerate((producer.commit_transaction, producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            producer.flush()
            ending()
    assert read(bootstrap, Range(topic, 0, 0, 4)) == [(topic, 0, 0, b"0")]
    assert read(bootstrap, Range(topic, 0, 1, 4)) == []


def test_what_was_deleted_is_told_or_passed_over(
    bootstrap: str, filled: str, admin: KafkaAdminClient
) -> None:
    admin.delete_records({TopicPartition(filled, 0): 30})
    lost = Range(filled, 0, 20, 40)
    with pytest.raises(DataLossError, match=rf"offsets 20 to 29 of {filled}-0 \(the log begins"):
        read(bootstrap, lost)
    found = read(bootstrap, lost, Range(filled, 1, 0, 2), fails_on_loss=False)
    assert sorted(row[1:3] for row in found) == [
        *((0, offset) for offset in range(30, 40)),
        (1, 0),
        (1, 1),
    ]
    assert read(bootstrap, Range(filled, 0, 5, 30), fails_on_loss=False) == []


def test_records_that_were_promised_and_are_not_there(bootstrap: str, filled: str) -> None:
    with pytest.raises(DataLossError, match=rf"offsets 150 to 159 of {filled}-0 .*ends at 100"):
        read(bootstrap, Range(filled, 0, 150, 160))
    with pytest.raises(StalledError, match=f"pollTimeoutMs=100: {filled}-0 at 100"):
        read(bootstrap, Range(filled, 0, 90, 110), patience_ms=100)

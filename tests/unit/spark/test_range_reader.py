"""A task reads its ranges and nothing beyond, whatever lies between the records."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import nullcontext

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas import KafkaAdminClient, KafkaProducer, TopicPartition  # noqa: E402
from barnabas.errors import OffsetOutOfRangeError  # noqa: E402
from barnabas.spark.errors import DataLossError, StalledError  # noqa: E402
from barnabas.spark.offset_ranges import OffsetRange  # noqa: E402
from barnabas.spark.range_reader import Acquire, open_consumer, read_ranges  # noqa: E402
from barnabas.spark.worker import ConsumerPool  # noqa: E402

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
}


def read(
    bootstrap: str,
    *ranges: OffsetRange,
    fail_on_data_loss: bool = True,
    poll_timeout_ms: float = 30_000,
    acquire: Acquire = open_consumer,
    **options: str,
) -> list[tuple[str, int, int, bytes]]:
    client = {
        "bootstrap.servers": bootstrap,
        "auto.offset.reset": "none",
        "isolation.level": "read_committed",
        **options,
    }
    batches = read_ranges(
        client,
        ranges,
        fail_on_data_loss=fail_on_data_loss,
        poll_timeout_ms=poll_timeout_ms,
        acquire=acquire,
    )
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
        OffsetRange(filled, 0, 10, 20),
        OffsetRange(filled, 0, 50, 52),
        OffsetRange(filled, 1, 97, 100),
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
    assert read(bootstrap, OffsetRange(topic, 0, 0, 4)) == [(topic, 0, 0, b"0")]
    assert read(bootstrap, OffsetRange(topic, 0, 1, 4)) == []


def test_what_was_deleted_is_told_or_passed_over(
    bootstrap: str, filled: str, admin: KafkaAdminClient
) -> None:
    admin.delete_records({TopicPartition(filled, 0): 30})
    lost = OffsetRange(filled, 0, 20, 40)
    with pytest.raises(DataLossError, match=rf"offsets 20 to 29 of {filled}-0 \(the log starts"):
        read(bootstrap, lost)
    found = read(bootstrap, lost, OffsetRange(filled, 1, 0, 2), fail_on_data_loss=False)
    assert sorted(row[1:3] for row in found) == [
        *((0, offset) for offset in range(30, 40)),
        (1, 0),
        (1, 1),
    ]
    assert read(bootstrap, OffsetRange(filled, 0, 5, 30), fail_on_data_loss=False) == []


def test_records_that_were_promised_and_are_not_there(bootstrap: str, filled: str) -> None:
    with pytest.raises(DataLossError, match=rf"offsets 150 to 159 of {filled}-0 .*ends at 100"):
        read(bootstrap, OffsetRange(filled, 0, 150, 160))
    with pytest.raises(StalledError, match=f"pollTimeoutMs=100: {filled}-0 at 100"):
        read(bootstrap, OffsetRange(filled, 0, 90, 110), poll_timeout_ms=100)


def test_a_later_range_of_a_partition_that_was_done_first(bootstrap: str, filled: str) -> None:
    # Answers of a few records each: the first partition is done long before the second.
    found = read(
        bootstrap,
        OffsetRange(filled, 0, 0, 1),
        OffsetRange(filled, 0, 98, 100),
        OffsetRange(filled, 1, 0, 100),
        poll_timeout_ms=5000,
        **{"max.partition.fetch.bytes": "1"},
    )
    assert sorted(row[1:3] for row in found) == [
        *((0, offset) for offset in (0, 98, 99)),
        *((1, offset) for offset in range(100)),
    ]


def test_a_consumer_that_served_other_ranges(bootstrap: str, filled: str) -> None:
    consumers = ConsumerPool()
    try:
        for first in (50, 60, 10):
            ranges = (
                OffsetRange(filled, 0, first, first + 5),
                OffsetRange(filled, 1, first, first + 10),
            )
            found = read(bootstrap, *ranges, acquire=consumers.acquire)
            assert sorted(row[1:3] for row in found) == [
                *((0, offset) for offset in range(first, first + 5)),
                *((1, offset) for offset in range(first, first + 10)),
            ]
        assert (
            len(read(bootstrap, OffsetRange(filled, 1, 0, 100), acquire=consumers.acquire)) == 100
        )
    finally:
        consumers.close()


def test_a_compacted_log_has_gaps(
    bootstrap: str, new_topic: Callable[..., str], admin: KafkaAdminClient
) -> None:
    """Ranges begin and end at offsets that are no longer there."""
    topic = new_topic(1, **COMPACTED)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            key = b"key %d" % number if number % 7 == 0 else b"key of many"
            producer.send(topic, b"%d" % number, key=key, partition=0)
            if number % 10 == 9:
                producer.flush()
    deadline_s = time.monotonic() + 30
    while len(found := read(bootstrap, OffsetRange(topic, 0, 0, 200))) > 29:
        assert time.monotonic() < deadline_s, f"{len(found)} records are still there"
    kept = range(0, 200, 7)
    assert [row[2] for row in found] == list(kept)
    for start, until in ((0, 100), (100, 200), (8, 9), (8, 14), (7, 8), (1, 22)):
        part = read(bootstrap, OffsetRange(topic, 0, start, until))
        assert [row[2] for row in part] == [each for each in kept if start <= each < until]


class Refused:
    """A consumer whose broker calls an offset out of range that it says is there."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        pass

    def seek(self, partition: TopicPartition, offset: int) -> None:
        pass

    def resume(self, *partitions: TopicPartition) -> None:
        pass

    def poll_arrow(self, timeout_ms: float, max_records: int) -> None:
        raise OffsetOutOfRangeError({})

    def position(self, partition: TopicPartition) -> int:
        return 5

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 10)


def test_offsets_that_are_refused_again_and_again_are_not_asked_for_for_ever() -> None:
    seconds = itertools.count()
    with pytest.raises(StalledError, match=r"pollTimeoutMs=3000: t-0 at 5"):
        list(
            read_ranges(
                {},
                [OffsetRange("t", 0, 5, 10)],
                fail_on_data_loss=True,
                poll_timeout_ms=3000,
                acquire=lambda client: nullcontext(Refused()),  # type: ignore[arg-type,return-value]
                monotonic=lambda: float(next(seconds)),
            )
        )

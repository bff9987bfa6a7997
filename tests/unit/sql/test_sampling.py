"""The latest records of a topic."""

from __future__ import annotations

import pytest
from tests.unit.sql.conftest import Fill

from barnabas import KafkaProducer
from barnabas.spark.offset_ranges import OffsetRange
from barnabas.sql.sampling import latest, take_sample

pytest.importorskip("pyarrow")


def test_the_ends_of_partitions_share_the_sample() -> None:
    ranges = [OffsetRange("t", 0, 0, 1000), OffsetRange("t", 1, 7, 9), OffsetRange("t", 2, 5, 5)]
    assert latest(ranges, 100) == [OffsetRange("t", 0, 950, 1000), OffsetRange("t", 1, 7, 9)]


def test_a_sample_has_the_latest_records(barnabas_bootstrap: str, fill: Fill) -> None:
    topic = fill([b"%d" % number for number in range(40)])
    client = {"bootstrap.servers": barnabas_bootstrap}
    ranges = [OffsetRange(topic, 0, 0, 20), OffsetRange(topic, 1, 0, 20)]
    sample = take_sample(client, ranges, 10)
    assert sorted(int(value or b"") for _, value in sample) == list(range(30, 40))
    assert take_sample(client, [OffsetRange(topic, 0, 20, 20)]) == []


def test_where_the_last_offsets_have_no_records_the_first_ones_do(
    barnabas_bootstrap: str, fill: Fill
) -> None:
    topic = fill([b"first"])
    with KafkaProducer(
        bootstrap_servers=barnabas_bootstrap, transactional_id=f"{topic}-tx"
    ) as producer:
        producer.init_transactions()
        for _ in range(4):
            producer.begin_transaction()
            producer.send(topic, b"never", partition=0)
            producer.flush()
            producer.abort_transaction()
    client = {"bootstrap.servers": barnabas_bootstrap, "isolation.level": "read_committed"}
    assert take_sample(client, [OffsetRange(topic, 0, 0, 9)], 2) == [(b"k0", b"first")]

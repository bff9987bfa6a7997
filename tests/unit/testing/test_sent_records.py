"""Records are counted in the requests of clients of all ages."""

from __future__ import annotations

import pytest

from barnabas.records.batch import iterate
from barnabas.records.builder import build_batch
from barnabas.records.legacy import encode_message
from barnabas.testing.sent_records import sent_records
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

BATCH = build_batch([(1_700_000_000_000, b"key", b"value")] * 3)
COMPRESSED = build_batch([(1_700_000_000_000, b"key", b"value")] * 40, "gzip")


def request(version: int, *records: bytes | None) -> bytes:
    """Return a Produce request without its size."""
    partitions = [
        PartitionProduceData(index=index, records=each) for index, each in enumerate(records)
    ]
    message = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=partitions)]
    )
    return request_frame(message, version, 1, "client")[4:]


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_records_of_all_partitions_count(version: int) -> None:
    assert sent_records(request(version, BATCH, COMPRESSED, BATCH + BATCH)) == 3 + 40 + 6
    assert sent_records(request(version)) == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_clients_count(magic: int) -> None:
    record = next(iter(iterate(BATCH)))
    assert sent_records(request(2, encode_message(record, magic) * 5)) == 5


def test_nothing_else_counts() -> None:
    assert sent_records(request_frame(MetadataRequest(), 9, 1, "client")[4:]) == 0
    assert sent_records(request(9, BATCH)[:40]) == 0
    assert sent_records(request(9, b"\xff" * 100)) == 0
    assert sent_records(b"") == 0

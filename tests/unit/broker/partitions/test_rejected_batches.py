"""Which rejected batches are failures, and how Kafka counts what is wrong with them."""

from __future__ import annotations

import pytest

from barnabas.broker.partitions.rejected_batches import count_rejected, reason_of
from barnabas.kernels.contract import Fault
from barnabas.log.validation import InvalidBatch, InvalidRecords
from barnabas.metrics.catalogue.rejections import REJECTIONS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptRecordError, RequestError, StorageError
from barnabas.replication.topic_traffic import FIELDS, TopicTraffic

NO_KEYS = InvalidRecords(
    ErrorCode.INVALID_RECORD, ((0, Fault.KEY.text), (4, Fault.KEY.text), (5, Fault.OFFSET.text))
)


@pytest.mark.parametrize(
    ("failure", "counted"),
    [
        (RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER), {}),
        (StorageError("the disk is full"), {}),
        (RequestError(ErrorCode.MESSAGE_TOO_LARGE), {"bytes_rejected": 100}),
        (RequestError(ErrorCode.RECORD_LIST_TOO_LARGE), {}),
        (RequestError(ErrorCode.CORRUPT_MESSAGE), {"invalid_crc": 1}),
        (CorruptRecordError("torn"), {"invalid_crc": 1}),
        (RequestError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), {"failed_produce": 1}),
        (NO_KEYS, {"failed_produce": 1, "no_key": 2, "invalid_offset": 1}),
        (InvalidBatch("magic 1", wrong_magic=True), {"failed_produce": 1, "invalid_magic": 1}),
        (InvalidBatch("3 offsets"), {"failed_produce": 1, "invalid_offset": 1}),
    ],
)
def test_what_is_counted(failure: BarnabasError, counted: dict[str, int]) -> None:
    traffic = TopicTraffic()
    count_rejected(traffic, 100, failure)
    assert {each: getattr(traffic, each) for each in FIELDS if getattr(traffic, each)} == counted


def test_reasons() -> None:
    assert reason_of(NO_KEYS) == "no-key-compacted"
    assert reason_of(InvalidBatch("3 offsets")) == "invalid"
    assert reason_of(RequestError(ErrorCode.INVALID_PRODUCER_EPOCH)) == "fenced"
    assert reason_of(RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)) is None


def test_every_reason_is_explained() -> None:
    reasons = {reason_of(RequestError(code)) for code in ErrorCode} - {None}
    assert len(reasons) > 5
    assert all(str(reason) in REJECTIONS.help for reason in reasons)

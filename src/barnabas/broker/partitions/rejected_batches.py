"""Why record batches are rejected, and what of it Kafka counts per topic."""

from __future__ import annotations

from barnabas.kernels.contract import Fault
from barnabas.log.validation import InvalidBatch, InvalidRecords
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptRecordError, RequestError
from barnabas.replication.topic_traffic import TopicTraffic

EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that Kafka does not count as failed requests."""

_REASONS = {
    ErrorCode.MESSAGE_TOO_LARGE: "too-large",
    ErrorCode.RECORD_LIST_TOO_LARGE: "too-large",
    ErrorCode.NOT_ENOUGH_REPLICAS: "not-enough-replicas",
    ErrorCode.INVALID_TIMESTAMP: "bad-timestamp",
    ErrorCode.CORRUPT_MESSAGE: "corrupt",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "sequence",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "sequence",
    ErrorCode.UNKNOWN_PRODUCER_ID: "sequence",
    ErrorCode.INVALID_PRODUCER_EPOCH: "fenced",
    ErrorCode.PRODUCER_FENCED: "fenced",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "fenced",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "transaction",
    ErrorCode.INVALID_TXN_STATE: "transaction",
    ErrorCode.TRANSACTION_ABORTABLE: "transaction",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "authorization",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "authorization",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "authorization",
    ErrorCode.KAFKA_STORAGE_ERROR: "storage",
    ErrorCode.POLICY_VIOLATION: "policy",
    ErrorCode.INVALID_RECORD: "invalid",
    ErrorCode.INVALID_REQUIRED_ACKS: "invalid",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "invalid",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "invalid",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "invalid",
}


def reason_of(failure: RequestError) -> str | None:
    """Return why a batch is rejected; None if it only came to the wrong broker."""
    if isinstance(failure, InvalidRecords) and failure.count(Fault.KEY):
        return "no-key-compacted"
    return _REASONS.get(failure.code)


def count_rejected(traffic: TopicTraffic, size_bytes: int, failure: BarnabasError) -> None:
    """Count a batch of a producer that was not appended."""
    code = ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(failure, RequestError | CorruptRecordError):
        code = failure.code
    if code not in EXPECTED:
        traffic.failed_produce += 1
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        traffic.bytes_rejected += size_bytes
    elif code is ErrorCode.CORRUPT_MESSAGE:
        traffic.invalid_crc += 1
    elif isinstance(failure, InvalidRecords):
        traffic.no_key += failure.count(Fault.KEY)
        traffic.invalid_offset += failure.count(Fault.OFFSET)
    elif isinstance(failure, InvalidBatch):
        if failure.wrong_magic:
            traffic.invalid_magic += 1
        else:
            traffic.invalid_offset += 1

"""What an answer of a broker says in the name of which partition: as its leader or coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.produce import ProduceResponse

OFFSETS = TopicPartition("__consumer_offsets", 0)
TRANSACTIONS = TopicPartition("__transaction_state", 0)
"""Both have one partition here."""

COORDINATED = {
    "OffsetCommitResponse": (OFFSETS, True),
    "OffsetFetchResponse": (OFFSETS, False),
    "TxnOffsetCommitResponse": (OFFSETS, True),
    "InitProducerIdResponse": (TRANSACTIONS, True),
    "AddPartitionsToTxnResponse": (TRANSACTIONS, True),
    "AddOffsetsToTxnResponse": (TRANSACTIONS, True),
    "EndTxnResponse": (TRANSACTIONS, True),
}
"""By answer: the partition of its coordinator, and whether it acknowledges something."""

NOT_HERE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)

SPEAKS = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    }
)
"""What only a leader or coordinator can know; other errors say that it cannot do something now."""


class Said(NamedTuple):
    """What was said for one partition."""

    key: TopicPartition
    code: ErrorCode
    acknowledges: bool


def said(request: Any, response: Any) -> Iterator[Said]:
    """Yield what a client is told; what followers are told is not of interest."""
    if isinstance(response, ProduceResponse):
        for produced in response.responses:
            for result in produced.partition_responses:
                code = ErrorCode.of(result.error_code)
                yield Said(TopicPartition(produced.name, result.index), code, True)
    elif isinstance(response, FetchResponse):
        state = request.replica_state
        if (state.replica_id if state is not None else request.replica_id) < 0:
            for fetched in response.responses:
                for data in fetched.partitions:
                    key = TopicPartition(fetched.topic, data.partition_index)
                    yield Said(key, ErrorCode.of(data.error_code), False)
    elif isinstance(response, ListOffsetsResponse):
        if request.replica_id < 0:
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    yield Said(key, ErrorCode.of(each.error_code), False)
    elif type(response).__name__ in COORDINATED:
        key, acknowledges = COORDINATED[type(response).__name__]
        worst = next((code for code in error_codes(response) if code), 0)
        yield Said(key, ErrorCode.of(worst), acknowledges)


def error_codes(message: Any) -> list[int]:
    """Return every error code anywhere in a message."""
    found: list[int] = []
    for each in message.FIELDS:
        value = getattr(message, each.name)
        if each.name.endswith("error_code"):
            found.append(value)
        elif each.struct is not None and value is not None:
            for part in value if each.is_array else [value]:
                found += error_codes(part)
    return found

"""Produce: what is appended, what is refused with which code, and when the answer leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.serving import (
    TIMESTAMP,
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    produce,
    produce_request,
    values_of,
)

from barnabas.model.error_codes import ErrorCode
from barnabas.records.batch import Record
from barnabas.records.legacy import encode_message
from barnabas.security.authorizer import ResourceType
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
def test_offsets_count_up(wire: Wire, topic: str, version: int, acks: int) -> None:
    """Appends get consecutive offsets, and what was appended is read."""
    assert produce(wire, topic, batch_of(["a", "b"]), version, acks=acks).base_offset == 0
    result = produce(wire, topic, batch_of(["c"]), version, acks=acks)
    assert (result.error_code, result.base_offset, result.log_append_time_ms) == (0, 2, -1)
    if version >= 5:
        assert result.log_start_offset == 0
    assert values_of(fetch(wire, topic)) == [b"a", b"b", b"c"]


def test_acks_0_has_no_answer(wire: Wire, topic: str) -> None:
    """After acks=0 the next answer on the connection is that of the next request."""
    wire.send(produce_request(topic, batch_of(["quiet"]), acks=0), 9)
    assert produce(wire, topic, batch_of(["told"])).base_offset == 1
    assert values_of(fetch(wire, topic)) == [b"quiet", b"told"]


def test_acks_0_failing_closes_the_connection(serving: Serving, topic: str) -> None:
    """A producer that wants no answers learns of a failure by losing its connection."""
    with serving.connect() as quiet:
        quiet.send(produce_request("nowhere", batch_of(["x"]), acks=0), 9)
        quiet.expect_close()
    serving.expect_line("produce with acks=0 failed: UNKNOWN_TOPIC_OR_PARTITION")


def test_a_bug_under_acks_0_closes_the_connection(
    serving: Serving, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a failure that nobody foresaw must not be answered where no answer is expected."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("barnabas.replication.partition.Partition.append", fail)
    with serving.connect() as quiet:
        quiet.send(produce_request(topic, batch_of(["x"]), acks=0), 9)
        quiet.expect_close()
    failure, closing = serving.lines.of()
    assert "Produce v9" in failure
    assert "acks=0 failed: UNKNOWN_SERVER_ERROR" in closing
    serving.lines.clear()
    with serving.connect() as told:
        assert produce(told, topic, batch_of(["x"])).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    serving.expect_line("Produce v9")


def test_unknown_topics_and_partitions(wire: Wire, topic: str) -> None:
    """A wrong partition spoils itself alone."""
    assert produce(wire, "nowhere", batch_of(["x"])).error_code == 3
    assert produce(wire, topic, batch_of(["x"]), partition=1).error_code == 3
    assert produce(wire, topic, batch_of(["x"]), partition=-1).error_code == 3
    data = [
        PartitionProduceData(index=index, records=batch_of([f"to {index}"])) for index in (7, 0)
    ]
    response = wire.ask(
        ProduceRequest(acks=1, topic_data=[TopicProduceData(name=topic, partition_data=data)]), 9
    )
    (result,) = response.responses
    assert [(each.index, each.error_code) for each in result.partition_responses] == [
        (7, 3),
        (0, 0),
    ]
    assert values_of(fetch(wire, topic)) == [b"to 0"]


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused(wire: Wire, topic: str, acks: int) -> None:
    """Only 0, 1 and -1 mean something."""
    assert produce(wire, topic, batch_of(["x"]), acks=acks).error_code == 21
    assert values_of(fetch(wire, topic)) == []


def test_internal_topics_are_not_for_clients(wire: Wire) -> None:
    """Coordinators' topics cannot be written to from outside."""
    assert produce(wire, "__consumer_offsets", batch_of(["x"])).error_code == 17


def test_large_batches_are_refused(wire: Wire, new_name: Callable[[], str]) -> None:
    """max.message.bytes counts the batch as it is sent."""
    name = new_name()
    create_topic(wire, name, configs={"max.message.bytes": "200"})
    assert produce(wire, name, batch_of([b"x" * 200])).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(wire, name, batch_of([b"x" * 100])).error_code == 0


def test_zstd_needs_a_new_version(wire: Wire, topic: str) -> None:
    """An old producer cannot have meant zstd; consumers as old could not read it either."""
    zstd = batch_of([b"packed"], "zstd")
    refused = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [produce(wire, topic, zstd, version).error_code for version in (3, 6, 7)] == [
        refused,
        refused,
        0,
    ]


def test_no_records(wire: Wire, topic: str) -> None:
    """Nothing to append is an error, not a success."""
    assert produce(wire, topic, None).error_code == ErrorCode.INVALID_RECORD
    assert produce(wire, topic, b"").error_code == ErrorCode.INVALID_RECORD


def test_idempotent_producers(wire: Wire, topic: str) -> None:
    """A batch sent twice is there once; a gap in the sequence is refused; an old epoch too."""
    producer_id = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id

    def send(values: list[str], sequence: int, epoch: int = 0) -> tuple[int, int]:
        batch = batch_of(
            values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        result = produce(wire, topic, batch, acks=-1)
        return result.error_code, result.base_offset

    assert send(["a", "b"], 0) == (0, 0)
    assert send(["c"], 2) == (0, 2)
    assert send(["a", "b"], 0) == (0, 0)
    assert send(["c"], 2) == (0, 2)
    assert send(["e"], 4) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(["d"], 3) == (0, 3)
    assert send(["d"], 0, epoch=1) == (0, 4)
    assert send(["x"], 4, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert values_of(fetch(wire, topic)) == [b"a", b"b", b"c", b"d", b"d"]


def test_transactions_need_a_transactional_id(wire: Wire, topic: str) -> None:
    """Nobody could end a transaction whose coordinator is not known."""
    producer = wire.ask(InitProducerIdRequest(transactional_id=None), 4)
    batch = batch_of(
        ["x"],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    result = produce(wire, topic, batch, acks=-1)
    assert result.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "without a transactional id" in result.error_message
    assert fetch(wire, topic).high_watermark == 0


class DenyTransactionalIds:
    """An authorizer that lets nobody use a transactional id."""

    def allows(self, principal: object, host: str, operation: object, kind: int, name: str) -> bool:
        return kind != ResourceType.TRANSACTIONAL_ID

    def allows_any(self, *_: object) -> bool:
        return True


def test_transactional_ids_are_asked_about(serving: Serving, wire: Wire, topic: str) -> None:
    """A request under an id that the producer may not use changes nothing."""
    batch = batch_of(["x"], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_request(topic, batch)
    request.transactional_id = "not-mine"
    allowing = serving.broker.authorizer
    serving.broker.authorizer = DenyTransactionalIds()
    try:
        answer = wire.ask(request, 9)
        assert fetch(wire, topic).high_watermark == 0
        request.topic_data[0].partition_data[0].records = batch_of(["x"])
        plain = wire.ask(request, 9)
    finally:
        serving.broker.authorizer = allowing
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    (result,) = plain.responses[0].partition_responses
    assert result.error_code == 0, "the id counts for batches of a transaction alone"


def test_topic_ids(wire: Wire, new_name: Callable[[], str]) -> None:
    """v13 names topics by id; the id of a deleted topic is unknown, also when the name is back."""
    name = new_name()
    first = create_topic(wire, name)

    def by_id(topic_id: bytes) -> Any:
        data = PartitionProduceData(index=0, records=batch_of(["x"]))
        request = ProduceRequest(
            acks=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
        )
        (topic,) = wire.ask(request, 13).responses
        assert topic.topic_id == topic_id
        return topic.partition_responses[0].error_code

    assert by_id(first) == 0
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000), 6)
    second = create_topic(wire, name)
    assert second != first
    assert by_id(first) == ErrorCode.UNKNOWN_TOPIC_ID
    assert by_id(second) == 0
    assert by_id(bytes(16)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetch(wire, name).high_watermark == 1


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (2, 0)])
def test_old_formats(wire: Wire, topic: str, version: int, magic: int) -> None:
    """Messages of the oldest producers are kept as batches, offsets and all."""
    messages = b"".join(
        encode_message(Record(index, TIMESTAMP if magic else -1, b"k", value, ()), magic)
        for index, value in enumerate([b"a", b"b"])
    )
    result = produce(wire, topic, messages, version)
    assert (result.error_code, result.base_offset) == (0, 0)
    assert produce(wire, topic, messages, version).base_offset == 2
    assert values_of(fetch(wire, topic)) == [b"a", b"b"] * 2


def test_old_formats_need_an_old_version(wire: Wire, topic: str) -> None:
    """From v3 on only batches are taken."""
    message = encode_message(Record(0, TIMESTAMP, None, b"a", ()), 1)
    assert produce(wire, topic, message, 3).error_code == ErrorCode.INVALID_RECORD


def test_append_time(wire: Wire, new_name: Callable[[], str]) -> None:
    """A topic of LogAppendTime tells when it was."""
    name = new_name()
    create_topic(wire, name, configs={"message.timestamp.type": "LogAppendTime"})
    assert produce(wire, name, batch_of(["x"])).log_append_time_ms > TIMESTAMP


def test_compacted_topics_need_keys(wire: Wire, new_name: Callable[[], str]) -> None:
    """From v8 on the answer names the records without a key."""
    name = new_name()
    create_topic(wire, name, configs={"cleanup.policy": "compact"})
    result = produce(wire, name, batch_of(["x", "y"]))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in result.record_errors] == [0, 1]
    assert result.error_message
    assert produce(wire, name, batch_of(["x", "y"]), 7).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("acks", [1, -1])
def test_flushed_before_answered(wire: Wire, new_name: Callable[[], str], acks: int) -> None:
    """With flush.messages=1 an answer means that the records are on disk, and readable."""
    name = new_name()
    create_topic(wire, name, configs={"flush.messages": "1"})
    for index in range(3):
        assert produce(wire, name, batch_of([str(index)]), acks=acks).error_code == 0
        assert fetch(wire, name, index).high_watermark == index + 1


def test_deletion_ends_a_waiting_produce(
    serving: Serving, wire: Wire, new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a flush of a topic that is deleted is told, not left to its timeout."""
    name = new_name()
    create_topic(wire, name, configs={"flush.messages": "1"})
    monkeypatch.setattr(serving.broker.partitions.flusher, "request", lambda partition: None)
    with serving.connect() as producer:
        producer.send(produce_request(name, batch_of(["x"]), acks=-1, timeout_ms=60_000), 9)
        serving.wait_inside(
            lambda: len(serving.broker.partitions.produce_purgatory), "a produce waits"
        )
        wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000), 6)
        _, response = producer.receive(ProduceRequest, 9)
    assert response.responses[0].partition_responses[0].error_code == 6


def test_a_flush_that_does_not_come_times_out(
    serving: Serving, wire: Wire, new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer's own timeout bounds the wait."""
    name = new_name()
    create_topic(wire, name, configs={"flush.messages": "1"})
    monkeypatch.setattr(serving.broker.partitions.flusher, "request", lambda partition: None)
    result = produce(wire, name, batch_of(["x"]), acks=-1, timeout_ms=20)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert fetch(wire, name).high_watermark == 0, "what is not safe is not shown"

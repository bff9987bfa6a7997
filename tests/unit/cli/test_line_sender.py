"""Batches keep their order through retries, stay with a partition, and report each outcome."""

from __future__ import annotations

import argparse
import asyncio

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.cli.line_sender import LineSender, Row, producer_core
from barnabas.client.cluster_client import ClusterClient
from barnabas.kernels import murmur2
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.records.batch import iterate
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


class Outcomes:
    """Remembers what became of each line."""

    def __init__(self) -> None:
        self.offsets: dict[int, int | None] = {}
        self.failures: dict[int, BaseException] = {}

    def acknowledged(self, partition: int, lines: list[int], base_offset: int | None) -> None:
        for position, line in enumerate(lines):
            self.offsets[line] = None if base_offset is None else base_offset + position

    def failed(
        self, lines: list[int], failure: BaseException, rejected: dict[int, BaseException]
    ) -> None:
        self.failures.update({line: rejected.get(line, failure) for line in lines})


class Log:
    """A scripted leader of four partitions that appends, after some failures."""

    def __init__(self, *failures: ErrorCode) -> None:
        self.failures = list(failures)
        self.partitions: dict[int, list[bytes]] = {}
        self.batches = 0
        self.broker = ScriptedBroker({MetadataRequest: self.metadata, ProduceRequest: self.produce})

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = self.broker.address
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
            topics=[
                MetadataResponseTopic(
                    name="t",
                    partitions=[
                        MetadataResponsePartition(partition_index=index, leader_id=1)
                        for index in range(4)
                    ],
                )
            ],
        )

    def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        answers = [self.append(data) for data in request.topic_data[0].partition_data]
        return ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=answers)]
        )

    def append(self, data: PartitionProduceData) -> PartitionProduceResponse:
        answer = PartitionProduceResponse(index=data.index)
        if self.failures:
            answer.error_code = self.failures.pop(0)
        else:
            self.batches += 1
            log = self.partitions.setdefault(data.index, [])
            answer.base_offset = len(log)
            log += [record.value or b"" for record in iterate(data.records)]
        return answer


def partition_for_key(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count


def row(value: bytes | None, key: bytes | None = None) -> Row:
    return key, value, (), 1000


def send(
    log: Log, rows: list[Row], partition: int | None = None, *, timeout: float = 30
) -> Outcomes:
    outcomes = Outcomes()
    arguments = argparse.Namespace(acks="all", codec="none", timeout=timeout)

    async def conversation() -> None:
        async with (
            log.broker,
            ClusterClient([log.broker.address], retry_backoff_ms=(1, 2)) as client,
        ):
            core = producer_core(client, arguments)
            await core.start(30_000)
            await core.topics.know("t", 30_000)
            sender = LineSender(core, "t", partition, outcomes)
            for line, record in enumerate(rows, 1):
                sender.add(record, line)
                if line % 100 == 0:
                    await sender.room()
            await sender.finish()
            await core.close()

    asyncio.run(conversation())
    return outcomes


def test_order_holds_through_retries() -> None:
    log = Log(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
    values = [b"%d" % number for number in range(500)]
    outcomes = send(log, [row(value) for value in values], 2)
    assert log.partitions == {2: values}
    assert outcomes.offsets == {line: line - 1 for line in range(1, 501)}
    assert outcomes.failures == {}


def test_records_of_one_step_share_a_batch() -> None:
    log = Log()
    send(log, [row(b"x" * 1000)] * 99, 0)
    assert log.batches == 1


def test_records_without_keys_stay_together_and_then_move_on() -> None:
    log = Log()
    send(log, [row(b"x" * 30_000)] * 90)
    assert sum(map(len, log.partitions.values())) == 90
    assert len(log.partitions) > 1
    assert log.batches < 20


def test_records_with_keys_go_where_the_key_says_and_are_told_apart() -> None:
    """Lines of several partitions alternate: each one gets its own offset."""
    log = Log()
    keys = [b"%d" % (number % 7) for number in range(300)]
    outcomes = send(log, [row(b"%d" % line, key) for line, key in enumerate(keys, 1)])
    for line, key in enumerate(keys, 1):
        offset = outcomes.offsets[line]
        assert offset is not None
        assert log.partitions[partition_for_key(key, 4)][offset] == b"%d" % line
    assert len(log.partitions) > 1


def test_neither_key_nor_value_is_a_record() -> None:
    log = Log()
    outcomes = send(log, [row(b"a"), row(None), row(b"b")], 3)
    assert log.partitions == {3: [b"a", b"", b"b"]}
    assert outcomes.offsets == {1: 0, 2: 1, 3: 2}
    outcomes = send(log, [row(None)])
    assert list(outcomes.offsets) == [1]


def test_a_line_is_not_bounded_by_the_limits_of_producers() -> None:
    log = Log()
    # A busy machine may need long for so much, and a second try would append it twice.
    outcomes = send(log, [row(b"x" * 40_000_000)], 0, timeout=240)
    assert outcomes.failures == {}
    assert [len(value) for value in log.partitions[0]] == [40_000_000]


def test_a_final_failure_is_reported_for_every_line() -> None:
    log = Log(ErrorCode.INVALID_RECORD)
    outcomes = send(log, [row(b"a"), row(b"b")], 0)
    assert sorted(outcomes.failures) == [1, 2]
    failure = outcomes.failures[1]
    assert isinstance(failure, RequestError)
    assert failure.code is ErrorCode.INVALID_RECORD


def test_retries_end_when_time_is_up_and_the_last_answer_is_known() -> None:
    log = Log(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 1000)
    outcomes = send(log, [row(b"a")], 0, timeout=0.5)
    failure = outcomes.failures[1].__cause__
    assert isinstance(failure, RequestError)
    assert failure.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert 0 < len(log.failures) < 999


def test_a_batch_too_large_is_halved_until_it_fits() -> None:
    log = Log(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE)
    outcomes = send(log, [row(b"%d" % number) for number in range(8)], 0)
    assert log.partitions[0] == [b"%d" % number for number in range(8)]
    assert log.batches == 3
    assert outcomes.offsets == {line: line - 1 for line in range(1, 9)}


def test_what_is_dropped_is_not_reported() -> None:
    log = Log(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 1000)
    outcomes = Outcomes()
    arguments = argparse.Namespace(acks="all", codec="none", timeout=30)

    async def conversation() -> None:
        async with log.broker, ClusterClient([log.broker.address]) as client:
            core = producer_core(client, arguments)
            await core.start(30_000)
            await core.topics.know("t", 30_000)
            sender = LineSender(core, "t", 0, outcomes)
            sender.add(row(b"tried"), 1)
            await sender.room()
            sender.add(row(b"waits"), 2)
            sender.drop()
            await core.close()

    asyncio.run(conversation())
    assert (outcomes.offsets, outcomes.failures, log.partitions) == ({}, {}, {})


def test_a_report_that_fails_ends_it() -> None:
    """A reader of --json that has gone ends the command, as it ends the others."""

    class Gone(Outcomes):
        def acknowledged(self, partition: int, lines: list[int], base_offset: int | None) -> None:
            raise BrokenPipeError

    log = Log()

    async def conversation() -> None:
        async with log.broker, ClusterClient([log.broker.address]) as client:
            core = producer_core(client, argparse.Namespace(acks="1", codec="none", timeout=30))
            await core.start(30_000)
            await core.topics.know("t", 30_000)
            sender = LineSender(core, "t", 0, Gone())
            sender.add(row(b"a"), 1)
            try:
                with pytest.raises(BrokenPipeError):
                    await sender.finish()
            finally:
                await core.close()

    asyncio.run(conversation())

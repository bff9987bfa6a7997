"""Batches keep their order through retries, stay with a partition, and report each outcome."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.cli.batch_sender import BATCH_BYTES, Batch, BatchSender, Row, partition_for_key
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.records.batch import iterate
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


class Outcomes:
    """Remembers what became of each line."""

    def __init__(self) -> None:
        self.offsets: dict[int, int | None] = {}
        self.failures: dict[int, BarnabasError] = {}

    def acknowledged(self, partition: int, batch: Batch, base_offset: int | None) -> None:
        for position, line in enumerate(batch.lines):
            self.offsets[line] = None if base_offset is None else base_offset + position

    def failed(self, partition: int, batch: Batch, failure: BarnabasError) -> None:
        self.failures.update(dict.fromkeys(batch.lines, failure))


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
        [data] = request.topic_data[0].partition_data
        answer = PartitionProduceResponse(index=data.index)
        if self.failures:
            answer.error_code = self.failures.pop(0)
        else:
            self.batches += 1
            log = self.partitions.setdefault(data.index, [])
            answer.base_offset = len(log)
            log += [record.value or b"" for record in iterate(data.records)]
        return ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=[answer])]
        )


def row(value: bytes, key: bytes | None = None) -> Row:
    return (1000, key, value, ())


def send(log: Log, rows: list[tuple[Row, int | None]], **options: Any) -> Outcomes:
    outcomes = Outcomes()

    async def conversation() -> None:
        async with (
            log.broker,
            ClusterClient([log.broker.address], retry_backoff_ms=(1, 2)) as client,
        ):
            sender = BatchSender(client, "t", 4, outcomes, Random(7), **options)
            for line, (record, partition) in enumerate(rows, 1):
                sender.add(record, line, partition)
                if line % 100 == 0:
                    await sender.room()
            await sender.finish()

    asyncio.run(conversation())
    return outcomes


def test_order_holds_through_retries() -> None:
    log = Log(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
    values = [b"%d" % number for number in range(500)]
    outcomes = send(log, [(row(value), 2) for value in values])
    assert log.partitions == {2: values}
    assert outcomes.offsets == {line: line - 1 for line in range(1, 501)}
    assert outcomes.failures == {}


def test_records_of_one_step_share_a_batch_up_to_its_size() -> None:
    log = Log()
    send(log, [(row(b"x" * 1000), 0)] * 99)
    assert log.batches == 1
    log = Log()
    send(log, [(row(b"x" * (BATCH_BYTES // 3)), 0)] * 9)
    assert log.batches == 5  # two fit


def test_records_without_keys_stay_together_and_then_move_on() -> None:
    log = Log()
    send(log, [(row(b"x" * 30_000), None)] * 90)
    assert sum(map(len, log.partitions.values())) == 90
    assert len(log.partitions) > 1
    assert log.batches < 20


def test_records_with_keys_go_where_the_key_says() -> None:
    log = Log()
    keys = [b"a", b"b", b"c", b"d"]
    send(log, [(row(key, key), None) for key in keys])
    assert {value: place for place, values in log.partitions.items() for value in values} == {
        key: partition_for_key(key, 4) for key in keys
    }


def test_a_final_failure_is_told_for_every_line() -> None:
    log = Log(ErrorCode.INVALID_RECORD)
    outcomes = send(log, [(row(b"a"), 0), (row(b"b"), 0)])
    assert sorted(outcomes.failures) == [1, 2]
    failure = outcomes.failures[1]
    assert isinstance(failure, RequestError)
    assert failure.code is ErrorCode.INVALID_RECORD


def test_retries_end_when_time_is_up() -> None:
    log = Log(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 1000)
    outcomes = send(log, [(row(b"a"), 0)], timeout_ms=30)
    failure = outcomes.failures[1]
    assert isinstance(failure, RequestError)
    assert failure.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert 0 < len(log.failures) < 999


def test_a_batch_too_large_is_halved_until_it_fits() -> None:
    log = Log(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE)
    outcomes = send(log, [(row(b"%d" % number), 0) for number in range(8)])
    assert log.partitions[0] == [b"%d" % number for number in range(8)]
    assert log.batches == 3
    assert outcomes.offsets == {line: line - 1 for line in range(1, 9)}


@pytest.mark.parametrize("count", [2, 3, 7])
def test_halves_make_the_whole(count: int) -> None:
    batch = Batch([row(b"%d" % number) for number in range(count)], list(range(count)), 100)
    first, second = batch.halves()
    assert first.rows + second.rows == batch.rows
    assert first.lines + second.lines == batch.lines
    assert first.size_bytes + second.size_bytes == 100
    assert first.rows
    assert second.rows

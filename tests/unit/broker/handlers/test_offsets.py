"""Offsets by time and by epoch, deleted records, producers and directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
    values_of,
)

from barnabas.log.files import DiskFiles
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import StorageError
from barnabas.records.builder import build_batch
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST, EARLIEST, LARGEST, LOCAL, TIERED = -1, -2, -3, -4, -5


def look_up(wire: Wire, topic: str, timestamp: int, version: int = 9, **more: Any) -> Any:
    """Ask for one offset of partition 0."""
    partition = ListOffsetsPartition(
        partition_index=0,
        timestamp=timestamp,
        **{k: v for k, v in more.items() if k != "isolation"},
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=more.get("isolation", 0),
        topics=[ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    ((result,),) = [each.partitions for each in wire.ask(request, version).topics]
    return result


@pytest.fixture
def filled(wire: Wire, topic: str) -> str:
    """A topic whose second record has the largest timestamp."""
    rows = [(TIMESTAMP + time, None, b"v", ()) for time in (0, 100, 50)]
    for row in rows:
        assert produce(wire, topic, build_batch([row])).error_code == 0
    return topic


@pytest.mark.parametrize("version", range(1, 12))
def test_special_times(wire: Wire, filled: str, version: int) -> None:
    """Earliest and latest in every version; newer ones where they are known."""
    assert look_up(wire, filled, LATEST, version).offset == 3
    assert look_up(wire, filled, EARLIEST, version).offset == 0
    if version >= 2:
        assert look_up(wire, filled, LATEST, version, isolation=1).offset == 3
    if version >= 4:
        assert look_up(wire, filled, LATEST, version).leader_epoch == 0
    expected = {
        LARGEST: (7, (TIMESTAMP + 100, 1)),
        LOCAL: (8, (-1, 0)),
        TIERED: (9, (-1, -1)),
    }
    for time, (first, answer) in expected.items():
        result = look_up(wire, filled, time, version)
        if version < first:
            assert result.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (result.error_code, (result.timestamp, result.offset)) == (0, answer)


@pytest.mark.parametrize("version", range(1, 12))
def test_times(wire: Wire, filled: str, version: int) -> None:
    """The first record at or after a time, or none."""
    for time, found in {
        0: (TIMESTAMP, 0),
        TIMESTAMP: (TIMESTAMP, 0),
        TIMESTAMP + 1: (TIMESTAMP + 100, 1),
        TIMESTAMP + 100: (TIMESTAMP + 100, 1),
        TIMESTAMP + 101: (-1, -1),
    }.items():
        result = look_up(wire, filled, time, version)
        assert (result.error_code, (result.timestamp, result.offset)) == (0, found)


def test_empty_log(wire: Wire, topic: str) -> None:
    """A log without records has ends, and no record of any time."""
    assert look_up(wire, topic, LATEST).offset == look_up(wire, topic, EARLIEST).offset == 0
    assert look_up(wire, topic, LARGEST).offset == look_up(wire, topic, 0).offset == -1


def test_times_without_meaning(wire: Wire, topic: str) -> None:
    """A negative time that nobody defined is a bad request."""
    assert look_up(wire, topic, -6).error_code == ErrorCode.INVALID_REQUEST
    assert look_up(wire, topic, -(2**63)).error_code == ErrorCode.INVALID_REQUEST


def test_oldest_version(wire: Wire, new_name: Callable[[], str]) -> None:
    """v0 answers with the starts of segments, newest first, and the end."""
    create_topic(wire, name := new_name(), configs={"segment.bytes": "1100"})
    for _ in range(4):
        produce(wire, name, batch_of([bytes(1000)]))
    assert look_up(wire, name, LATEST, 0, max_num_offsets=10).old_style_offsets == [4, 3, 2, 1, 0]
    assert look_up(wire, name, LATEST, 0, max_num_offsets=2).old_style_offsets == [4, 3]
    assert look_up(wire, name, EARLIEST, 0).old_style_offsets == [0]
    assert look_up(wire, name, LATEST, 0, max_num_offsets=0).error_code == 42


def test_errors(wire: Wire, topic: str) -> None:
    """Unknown partitions, unknown epochs, a partition named twice."""
    assert look_up(wire, "nowhere", LATEST).error_code == 3
    newer = look_up(wire, topic, LATEST, current_leader_epoch=9)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    twice = ListOffsetsTopic(
        name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)] * 2
    )
    response = wire.ask(ListOffsetsRequest(replica_id=-1, topics=[twice]), 9)
    assert [each.error_code for each in response.topics[0].partitions] == [0, 42]


def test_a_damaged_batch_is_told_of_its_partition_alone(tmp_path: Path) -> None:
    """The others of the same request are answered."""
    names = ("damaged", "whole")
    with Serving(tmp_path) as serving, serving.connect() as wire:
        for name in names:
            create_topic(wire, name)
            assert produce(wire, name, batch_of(["a" * 100], codec="gzip")).error_code == 0
        file = Path(serving.broker.partitions["damaged", 0].log.segments[-1].path(".log"))
        data = file.read_bytes()
        file.write_bytes(data[:61] + bytes(len(data) - 61))
        wanted = ListOffsetsPartition(partition_index=0, timestamp=TIMESTAMP)
        topics = [ListOffsetsTopic(name=name, partitions=[wanted]) for name in names]
        answer = wire.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 9)
        damaged, whole = (topic.partitions[0] for topic in answer.topics)
        assert (damaged.error_code, damaged.offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
        assert (whole.error_code, whole.offset) == (0, 0)
        serving.lines.clear()  # the log may have looked for the mistake in its indexes, and told


def cut(wire: Wire, topic: str, offset: int, partition: int = 0) -> tuple[int, int]:
    """Delete records; return error code and low watermark."""
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])])
    (result,) = wire.ask(request, 2).topics[0].partitions
    return result.error_code, result.low_watermark


def test_delete_records(wire: Wire, filled: str, new_name: Callable[[], str]) -> None:
    """The log start moves forward only, at most to the high watermark."""
    assert cut(wire, filled, 1) == (0, 1)
    assert look_up(wire, filled, EARLIEST).offset == 1
    assert cut(wire, filled, 0) == (0, 1)
    assert cut(wire, filled, 4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert cut(wire, filled, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert values_of(fetch(wire, filled, 1)) == [b"v", b"v"]
    assert cut(wire, filled, -1) == (0, 3)
    assert cut(wire, "nowhere", 0) == (3, -1)
    assert cut(wire, filled, 0, partition=5) == (3, -1)
    create_topic(wire, compacted := new_name(), configs={"cleanup.policy": "compact"})
    assert cut(wire, compacted, 0) == (ErrorCode.POLICY_VIOLATION, -1)


@pytest.mark.parametrize("version", range(5))
def test_epoch_ends(wire: Wire, filled: str, version: int) -> None:
    """The present epoch ends at the log's end; a later one is unknown."""

    def end_of(epoch: int, current: int = -1, topic: str = filled) -> tuple[int, int]:
        wanted = OffsetForLeaderPartition(
            partition=0, leader_epoch=epoch, current_leader_epoch=current
        )
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
        )
        (result,) = wire.ask(request, version).topics[0].partitions
        return result.error_code, result.end_offset

    assert end_of(0) == (0, 3)
    assert end_of(7) == (0, -1)
    assert end_of(0, topic="nowhere") == (3, -1)
    if version >= 2:
        assert end_of(0, current=3) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)


def test_producers_are_described(wire: Wire, topic: str) -> None:
    """Who writes, with which sequence."""
    first = wire.ask(InitProducerIdRequest(transactional_id=None), 4)
    second = wire.ask(InitProducerIdRequest(transactional_id=None), 4)
    assert (first.producer_epoch, second.producer_id) == (0, first.producer_id + 1)
    batch = batch_of(["a", "b"], producer_id=first.producer_id, producer_epoch=0, base_sequence=0)
    produce(wire, topic, batch)
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0, 9])])
    known, unknown = wire.ask(request, 0).topics[0].partitions
    (state,) = known.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (
        first.producer_id,
        0,
        1,
    )
    assert (state.last_timestamp, state.current_txn_start_offset) == (TIMESTAMP + 1, -1)
    assert unknown.error_code == 3


def test_log_dirs(serving: Serving, wire: Wire, topic: str) -> None:
    """Sizes by directory; of all replicas, or of those that are named."""
    batch = batch_of(["x"])
    produce(wire, topic, batch)
    (everything,) = wire.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert everything.log_dir == serving.options["log.dirs"]
    assert everything.total_bytes >= everything.usable_bytes > 0
    sizes = {each.name: each.partitions[0].partition_size for each in everything.topics}
    assert sizes[topic] == len(batch)
    named = [DescribableLogDirTopic(topic=topic, partitions=[0, 5])]
    (some,) = wire.ask(DescribeLogDirsRequest(topics=named), 1).results
    assert [(each.name, len(each.partitions)) for each in some.topics] == [(topic, 1)]
    (none,) = wire.ask(DescribeLogDirsRequest(topics=[]), 1).results
    assert none.topics == []


def test_a_directory_that_cannot_be_described_is_told_among_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    space = DiskFiles.space

    def fails(files: DiskFiles, path: str) -> tuple[int, int]:
        if path == bad:
            raise StorageError(f"cannot look at {path}")
        return space(files, path)

    with Serving(tmp_path, {"log.dirs": f"{good},{bad}"}) as serving, serving.connect() as wire:
        monkeypatch.setattr(DiskFiles, "space", fails)
        results = wire.ask(DescribeLogDirsRequest(topics=None), 4).results
        codes = {result.log_dir: result.error_code for result in results}
        assert codes == {good: 0, bad: ErrorCode.KAFKA_STORAGE_ERROR}
        serving.expect_line(f"log directory {bad}: could not be described")


def test_cluster(serving: Serving, wire: Wire) -> None:
    """Id, controller and brokers; the controllers' own endpoints are elsewhere."""
    response = wire.ask(DescribeClusterRequest(), 1)
    assert (response.error_code, response.controller_id) == (0, 0)
    assert response.cluster_id == serving.broker.cluster.cluster_id
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port) == (0, *serving.address)
    wrong = wire.ask(DescribeClusterRequest(endpoint_type=2), 1)
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    odd = wire.ask(DescribeClusterRequest(endpoint_type=9), 1)
    assert odd.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE

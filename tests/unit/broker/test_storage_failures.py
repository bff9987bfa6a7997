"""A disk that is full or cannot flush: told to clients, survived by the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    metadata,
    produce,
    values_of,
)
from tests.unit.log.conftest import FaultyFiles

from barnabas.log.partition_log import PartitionLog
from barnabas.log.slice import Slice
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError, StorageError
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import FetchRequest


def test_full_disk(tmp_path: Path) -> None:
    """An append that does not fit is refused whole; readers and later appends go on."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        assert produce(wire, "t", batch_of(["before"])).error_code == 0
        disk.room = 20
        refused = produce(wire, "t", batch_of(["during"]), acks=-1)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        serving.expect_line("append failed")
        assert values_of(fetch(wire, "t")) == [b"before"]
        disk.room = None
        assert produce(wire, "t", batch_of(["after"]), acks=-1).base_offset == 1
        assert values_of(fetch(wire, "t")) == [b"before", b"after"]
        serving.stop()
        serving.start()
        with serving.connect() as again:
            assert values_of(fetch(again, "t")) == [b"before", b"after"]


def test_failed_flush(tmp_path: Path) -> None:
    """What could not be flushed is neither acknowledged nor shown, until a flush succeeds."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t", configs={"flush.messages": "1"})
        disk.flush_fails = True
        refused = produce(wire, "t", batch_of(["first"]), timeout_ms=50)
        assert refused.error_code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR)
        serving.expect_line("flush failed")
        assert fetch(wire, "t").high_watermark == 0
        disk.flush_fails = False
        assert produce(wire, "t", batch_of(["second"])).error_code == 0
        assert values_of(fetch(wire, "t")) == [b"first", b"second"]


def test_a_waiting_reader_whose_disk_fails_harms_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append that wakes it is acknowledged; the reader alone is told of the failure."""

    def fail(*_: object, **__: object) -> Any:
        raise StorageError("cannot read: the disk is gone")

    with Serving(tmp_path) as serving, serving.connect() as wire, serving.connect() as reader:
        create_topic(wire, "t")
        reader.send(fetch_request("t", min_bytes=1000, max_wait_ms=60_000), 12)
        serving.wait_inside(
            lambda: len(serving.broker.partitions.fetch_purgatory), "the reader waits"
        )
        monkeypatch.setattr(PartitionLog, "read", fail)
        assert produce(wire, "t", batch_of(["x"])).error_code == 0
        _, answer = reader.receive(FetchRequest, 12)
        result = answer.responses[0].partitions[0]
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        serving.expect_line("t-0: read failed")


@pytest.mark.parametrize(
    ("part", "version", "failure", "code", "line"),
    [
        (Slice, 12, StorageError("gone"), ErrorCode.KAFKA_STORAGE_ERROR, "t-0: read failed: gone"),
        (Slice, 3, StorageError("gone"), ErrorCode.KAFKA_STORAGE_ERROR, "t-0: read failed: gone"),
        (
            PartitionLog,
            12,
            CorruptFileError("an index of nonsense"),
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "t-0: read failed: offset=0: an index of nonsense",
        ),
    ],
)
def test_a_read_that_fails_half_way_lets_go_of_its_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: type,
    version: int,
    failure: Exception,
    code: ErrorCode,
    line: str,
) -> None:
    """Files that stay pinned can never be closed: a failing disk would use up all descriptors."""

    def fail(*_: object) -> Any:
        raise failure

    with Serving(tmp_path) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        produce(wire, "t", batch_of(["x"]))
        pooled = serving.broker.partitions["t", 0].log.segments[-1].file
        with monkeypatch.context() as patched:
            patched.setattr(part, "read" if part is Slice else "aborted_transactions", fail)
            assert fetch(wire, "t", version=version, isolation_level=1).error_code == code
        serving.expect_line(line)
        assert pooled.pins == 0


def test_topics_on_a_full_disk(tmp_path: Path) -> None:
    """A topic whose log cannot be made exists without it, and can be deleted and made again."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        disk.room = 0
        topic_id = create_topic(wire, "u")
        serving.expect_line("u-0: log could not be opened")
        assert metadata(wire, "u").topics[0].topic_id == topic_id
        assert produce(wire, "u", batch_of(["x"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(wire, "u").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.room = None
        assert produce(wire, "t", batch_of(["x"])).error_code == 0
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=60_000)
        assert wire.ask(request, 6).responses[0].error_code == 0
        create_topic(wire, "u")
        assert produce(wire, "u", batch_of(["x"])).error_code == 0


def test_logs_that_could_not_be_made_are_made_at_the_next_start(tmp_path: Path) -> None:
    """When there is room again, a restart is enough."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            disk.room = 0
            create_topic(wire, "u")
            serving.expect_line("u-0: log could not be opened")
            disk.room = None
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            assert produce(wire, "u", batch_of(["x"])).error_code == 0

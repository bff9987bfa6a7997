"""A disk that is full or cannot flush: told to clients, survived by the broker."""

from __future__ import annotations

from pathlib import Path

from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    metadata,
    produce,
    values_of,
)
from tests.unit.log.conftest import FaultyFiles

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def test_full_disk(tmp_path: Path) -> None:
    """An append that does not fit is refused whole; readers and later appends go on."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        assert produce(wire, "t", batch_of(["before"])).error_code == 0
        disk.room = 20
        refused = produce(wire, "t", batch_of(["during"]), acks=-1)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        serving.expect_line("cannot append to")
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
        serving.expect_line("cannot flush")
        assert fetch(wire, "t").high_watermark == 0
        disk.flush_fails = False
        assert produce(wire, "t", batch_of(["second"])).error_code == 0
        assert values_of(fetch(wire, "t")) == [b"first", b"second"]


def test_topics_on_a_full_disk(tmp_path: Path) -> None:
    """A topic whose log cannot be made exists without it, and can be deleted and made again."""
    disk = FaultyFiles()
    with Serving(tmp_path, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        disk.room = 0
        topic_id = create_topic(wire, "u")
        serving.expect_line("cannot open the log of u-0")
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
            serving.expect_line("cannot open the log of u-0")
            disk.room = None
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            assert produce(wire, "u", batch_of(["x"])).error_code == 0

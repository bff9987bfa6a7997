"""Moving replicas between log directories: nothing is lost, and readers and writers go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.broker.serving import (
    TIMESTAMP,
    Serving,
    batch_of,
    create_topic,
    fetch,
    produce,
    values_of,
    wait_for,
)

from barnabas.log.files import DiskFiles
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A broker with two directories."""
    paths = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Serving(tmp_path, {"log.dirs": paths, "log.segment.delete.delay.ms": 0}) as running:
        yield running


def move(serving: Serving, path: object, topic: str = "t", index: int = 0, version: int = 2) -> int:
    """Ask for a move and return the error code."""
    wanted = AlterReplicaLogDir(
        path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    )
    with serving.connect() as wire:
        answer = wire.ask(AlterReplicaLogDirsRequest(dirs=[wanted]), version)
    ((result,),) = [each.partitions for each in answer.results]
    assert answer.results[0].topic_name == topic
    return int(result.error_code)


def where(serving: Serving, topic: str = "t") -> str | None:
    path = serving.inside(lambda: serving.broker.logs.path_of(TopicPartition(topic, 0)))
    return None if path is None else Path(path).name


def read_values(serving: Serving, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    with serving.connect() as wire:
        while len(found) < count:
            some = values_of(fetch(wire, "t", len(found)))
            assert some
            found += some
    return found


def only_directories(tmp_path: Path) -> list[str]:
    return sorted(
        f"{d.parent.name}/{d.name}" for each in "ab" for d in (tmp_path / each).glob("t*")
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_move_while_written(serving: Serving, tmp_path: Path, version: int) -> None:
    """Every acknowledged record is there, in order, before and after a restart."""
    values = [f"value {number}".encode() * 50 for number in range(600)]
    with serving.connect() as wire:
        create_topic(wire, "t", configs={"segment.bytes": "30000"})
        source = where(serving)
        target = "b" if source == "a" else "a"
        for number, value in enumerate(values):
            if number == 200:
                assert move(serving, tmp_path / target, version=version) == 0
            assert produce(wire, "t", batch_of([value]), acks=-1).base_offset == number
        wait_for(lambda: where(serving) == target, "the log is in the other directory")
        assert read_values(serving, 600) == values
        assert produce(wire, "t", batch_of(["after"]), acks=-1).base_offset == 600
    wait_for(
        lambda: only_directories(tmp_path) == [f"{target}/t-0"], "only the new directory is left"
    )
    serving.stop()
    serving.start()
    assert where(serving) == target
    assert read_values(serving, 601) == [*values, b"after"]
    assert only_directories(tmp_path) == [f"{target}/t-0"]


def test_producers_and_log_start_move_along(serving: Serving, tmp_path: Path) -> None:
    """Duplicates are still known and deleted records stay deleted in the new directory."""
    with serving.connect() as wire:
        create_topic(wire, "t")
        for number in range(5):
            sent = batch_of(["x", "y"], producer_id=7, producer_epoch=0, base_sequence=2 * number)
            assert produce(wire, "t", sent).base_offset == 2 * number
        partition = serving.broker.partitions["t", 0]
        serving.inside(lambda: partition.log.delete_records_before(3))
        target = "b" if where(serving) == "a" else "a"
        assert move(serving, tmp_path / target) == 0
        wait_for(lambda: where(serving) == target, "the log is in the other directory")
        assert serving.inside(lambda: partition.log.log_start_offset) == 3
        assert produce(wire, "t", sent).base_offset == 8
        assert serving.inside(lambda: partition.log.log_end_offset) == 10
        assert fetch(wire, "t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(values_of(fetch(wire, "t", 3))) == 8  # with the whole batch of offset 2
        # And back again, to where a log of that name was before.
        source = "b" if target == "a" else "a"
        assert move(serving, tmp_path / source) == 0
        wait_for(lambda: where(serving) == source, "the log is back")
        assert serving.inside(lambda: partition.log.log_start_offset) == 3


def test_a_slow_move_is_shown_and_can_be_taken_back(serving: Serving, tmp_path: Path) -> None:
    with serving.connect() as wire:
        create_topic(wire, "t")
        for _ in range(3):
            assert produce(wire, "t", batch_of([b"x" * 600_000])).error_code == 0
        source = where(serving)
        target = "b" if source == "a" else "a"
        options = serving.broker.configs
        serving.inside(
            lambda: options.set_dynamic(
                "0", {"replica.alter.log.dirs.io.max.bytes.per.second": "1000"}
            )
        )
        assert move(serving, tmp_path / target) == 0

        def shown() -> list[tuple[str, bool, int]]:
            answer = wire.ask(DescribeLogDirsRequest(topics=None))
            return [
                (Path(each.log_dir).name, partition.is_future_key, partition.offset_lag)
                for each in answer.results
                for topic in each.topics
                for partition in topic.partitions
            ]

        wait_for(lambda: (target, True, 2) in shown(), "one record is copied and two are not")
        assert (source, False, 0) in shown()
        assert move(serving, tmp_path / target) == 0  # asked for again: nothing changes
        assert move(serving, tmp_path / str(source)) == 0  # where it is: the move ends
        wait_for(lambda: only_directories(tmp_path) == [f"{source}/t-0"], "the copy is removed")
        assert shown() == [(source, False, 0)]
        assert move(serving, tmp_path / target) == 0
    serving.stop()  # in the middle of a move
    assert f"{source}/t-0" in only_directories(tmp_path)
    serving.start()
    wait_for(lambda: only_directories(tmp_path) == [f"{source}/t-0"], "the copy is removed")


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """The thread that copies ends before the kill does; the next start removes what it made."""

    class Slow(DiskFiles):
        begun, gate = threading.Event(), threading.Event()

        def flush_file(self, path: str) -> bool:
            if "-future" in path:
                self.begun.set()
                assert self.gate.wait(60)
            return super().flush_file(path)

    disk = Slow()
    options = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "log.flush.interval.messages": 1}
    with Serving(tmp_path, options, files=disk) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            assert produce(wire, "t", batch_of(["kept"]), acks=-1).error_code == 0
        source = where(serving)
        target = "b" if source == "a" else "a"
        assert move(serving, tmp_path / target) == 0
        assert disk.begun.wait(60)
        serving.broker.loop.call_soon_threadsafe(
            serving.broker.loop.call_later, 0.01, disk.gate.set
        )
        serving.kill()
        assert disk.gate.is_set()
        serving.start()
        wait_for(lambda: only_directories(tmp_path) == [f"{source}/t-0"], "the copy is removed")
        assert read_values(serving, 1) == [b"kept"]


def test_refusals(serving: Serving, tmp_path: Path) -> None:
    with serving.connect() as wire:
        create_topic(wire, "t")
    assert move(serving, tmp_path / "c") == ErrorCode.LOG_DIR_NOT_FOUND
    assert move(serving, tmp_path / "a", "u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(serving, tmp_path / "a", "t", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_two_logs_of_one_partition(serving: Serving, tmp_path: Path) -> None:
    """A crash between the two renames of a move: the longer log stays."""
    with serving.connect() as wire:
        create_topic(wire, "t")
        assert produce(wire, "t", batch_of(["one", "two"])).error_code == 0
    source = where(serving)
    target = "b" if source == "a" else "a"
    serving.stop()
    import shutil

    shutil.copytree(tmp_path / str(source) / "t-0", tmp_path / target / "t-0")
    log = next((tmp_path / target / "t-0").glob("*.log"))
    log.write_bytes(b"")
    for name in ("index", "timeindex"):
        log.with_suffix(f".{name}").write_bytes(b"")
    serving.start()
    assert where(serving) == source
    assert read_values(serving, 2) == [b"one", b"two"]
    wait_for(lambda: only_directories(tmp_path) == [f"{source}/t-0"], "the shorter one is removed")
    serving.expect_line("t-0: removing a second log")


def test_move_of_a_log_that_is_compacted_meanwhile(tmp_path: Path) -> None:
    """The newest value of every key is there, whatever compaction did before and during it."""
    options = {
        "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}",
        "log.cleaner.backoff.ms": 10,
        "log.flush.offset.checkpoint.interval.ms": 10,
        "log.cleaner.io.buffer.size": 4096,
    }
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "2000",
        "min.cleanable.dirty.ratio": "0.01",
        "file.delete.delay.ms": "0",
    }
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t", configs=configs)
        partition = serving.broker.partitions["t", 0]
        for number in range(900):
            row = (TIMESTAMP, b"k%d" % (number % 7), b"v%d" % number)
            assert produce(wire, "t", build_batch([row])).error_code == 0
            if number % 300 == 150:
                target = "b" if where(serving) == "a" else "a"
                assert move(serving, tmp_path / target) == 0
        wait_for(lambda: where(serving) == target, "the log is in the other directory")
        serving.wait_inside(lambda: partition.log.cleaned_offset > 800, "it is compacted there")
        for again in (serving.stop, serving.kill, None):
            found: dict[bytes | None, bytes | None] = {}
            with serving.connect() as reader:
                offset = 0
                while data := bytes(fetch(reader, "t", offset).records or b""):
                    found |= {record.key: record.value for record in iterate(data)}
                    offset = read_headers(data)[-1].next_offset  # compaction leaves empty batches
            assert found == {b"k%d" % (number % 7): b"v%d" % number for number in range(893, 900)}
            if again is not None:
                again()
                serving.start()
        serving.lines.clear()

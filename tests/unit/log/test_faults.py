"""Crashes at every single file operation, and bits that rot in every file of a log.

A crash loses, tears and reorders what was not flushed (`crash`), or only ends the process
(`kill`). After it a new life must find: every record that was flushed, whole batches only, one
log of the partition, and nothing that stays behind of what was under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

import pytest

from barnabas.broker.storage.logs import Logs
from barnabas.config.topic import TopicOptions
from barnabas.kernels import check_batch
from barnabas.log.directory import RECOVERY_POINTS, LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.fork import Fork
from barnabas.log.inspection import inspect_directory, inspect_partition
from barnabas.log.partition_log import PartitionLog
from barnabas.log.relocation import Relocation
from barnabas.model.errors import CorruptRecordError, DamagedLogError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
T0 = TopicPartition("t", 0)
TOPIC_ID = bytes(range(16))
OPTIONS = TopicOptions.parse({"segment.bytes": "700", "index.interval.bytes": "150"})
MUTATING = {
    "pwrite",
    "truncate",
    "flush",
    "open",
    "write",
    "write_atomic",
    "rename",
    "link",
    "unlink",
    "remove_tree",
    "make_dirs",
    "flush_file",
    "flush_dir",
}


class PowerIsGone(Exception):
    """Stops a scenario at one of its file operations."""


class Inline(Executor):
    """Runs everything at once, in the calling thread."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as failure:  # noqa: BLE001  # as an executor does
            future.set_exception(failure)
        return future


class World:
    """A disk with two data directories, one log in the first, and what was promised of it."""

    def __init__(self, seed: int, records: int = 12) -> None:
        self.disk = SimulatedDisk(Random(seed), lambda: NOW)
        self.directories = [
            LogDirectory(FilePool(self.disk, limit=8), path) for path in ("/a", "/b")
        ]
        for directory in self.directories:
            directory.write_meta(0, "cluster")
        self.log = self.directories[0].open_log(T0, OPTIONS, NOW, topic_id=TOPIC_ID)
        self.values: list[bytes] = []
        self.flushed = 0
        self.append(records)
        self.flush()

    def append(self, count: int) -> None:
        for _ in range(count):
            number = len(self.values)
            value = b"value %d" % number
            self.values.append(value)
            batch = build_batch(
                [(NOW + number, b"k", value)],
                producer_id=7,
                producer_epoch=0,
                base_sequence=number,
            )
            self.log.append_as_leader(bytearray(batch), 1, NOW)

    def flush(self) -> None:
        self.log.flush(NOW)
        self.flushed = self.log.log_end_offset


def values_of(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        piece = log.read(position, 300)
        data = piece.read()
        piece.release()
        headers = read_headers(data)
        at = 0
        for header in headers:
            check_batch(data, at)
            at += header.size
        found += [(r.offset, r.value) for r in iterate(data) if r.offset >= position]
        position = headers[-1].next_offset
    return found


def restart(world: World, check: Callable[[Logs], None]) -> None:
    """Start as a broker does, check, let it work, stop cleanly, and look for what stays behind."""

    async def life() -> None:
        logs = Logs(world.disk, ["/a", "/b"], Inline(), lambda: 0.0, lambda count: bytes(count))
        assert logs.offline == {}
        logs.identity()
        await logs.load(lambda topic: OPTIONS, NOW, 1)
        logs.settle_forks(lambda topic_id: topic_id == TOPIC_ID)
        check(logs)
        for log in logs.all:
            before = log.log_end_offset
            log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"new")])), 5, NOW)
            assert log.log_end_offset == before + 1
        for _ in range(3):
            await asyncio.sleep(0)  # deleted logs are removed
        await logs.write_checkpoints()
        await logs.close(NOW, 1)

    asyncio.run(life())
    disk = world.disk
    for directory in ("/a", "/b"):
        for name in disk.list(directory):
            assert not name.endswith((".tmp", "-delete", "-future")), f"{directory}/{name}"
            if disk.is_dir(f"{directory}/{name}"):
                path = f"{directory}/{name}"
                stray = [each for each in disk.list(path) if not known(each)]
                assert stray == []
                assert [flaw for flaw in inspect_partition(disk, path) if flaw.damage] == []


def known(name: str) -> bool:
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    return name in ("partition.metadata", "leader-epoch-checkpoint") or name.endswith(suffixes)


def has_log(world: World, *, lost: bool) -> Callable[[Logs], None]:
    """The log is there exactly once, with all that was flushed, or with everything."""

    def check(logs: Logs) -> None:
        [log] = logs.all
        values = values_of(log)
        assert values == list(enumerate(world.values))[: len(values)]
        assert len(values) >= (world.flushed if lost else log_end(world))
        entry = log.producers.get(7)
        assert entry is not None
        assert entry.last_sequence == len(values) - 1

    return check


def log_end(world: World) -> int:
    return world.log.log_end_offset


def crash_everywhere(scenario: Callable[[World], Any], check: Any = has_log) -> int:
    """Run a scenario, and again with a crash before each of its file operations."""
    crashes = 0
    for seed in range(2):
        for lost in (True, False):
            step = 0
            while True:
                world = World(seed)
                left = step

                def before(operation: str, path: str) -> None:
                    nonlocal left
                    if operation in MUTATING:
                        if left == 0:
                            raise PowerIsGone(f"{operation} {path}")
                        left -= 1

                world.disk.before = before
                try:
                    scenario(world)
                    done = True
                except PowerIsGone:
                    done = False
                world.disk.before = lambda operation, path: None
                world.disk.crash() if lost else world.disk.kill()
                restart(world, check(world, lost=lost))
                if done:
                    break
                step += 1
            crashes += step
    return crashes


def test_append_and_flush() -> None:
    def scenario(world: World) -> None:
        for _ in range(3):
            world.append(2)
            world.flush()

    assert crash_everywhere(scenario) > 30


def test_roll() -> None:
    def scenario(world: World) -> None:
        world.append(3)
        world.log.roll(NOW)
        world.append(3)
        world.log.roll(NOW)
        world.flush()

    assert crash_everywhere(scenario) > 30


def test_close() -> None:
    def scenario(world: World) -> None:
        world.append(5)
        for directory in world.directories:
            directory.close(NOW)

    assert crash_everywhere(scenario) > 30


def test_checkpoint() -> None:
    """Old content or new, never a mixture; a wrong one would cut or skip records."""

    def scenario(world: World) -> None:
        world.append(3)
        world.directories[0].write_recovery_points()
        world.flush()
        world.directories[0].write_recovery_points()
        world.directories[0].write_log_starts()
        world.directories[0].write_high_watermarks()

    assert crash_everywhere(scenario) > 30


def test_delete() -> None:
    """The log is there, or it is gone with all its files."""

    def scenario(world: World) -> None:
        path = world.directories[0].delete_log(T0, "0" * 32)
        world.disk.flush_dir("/a")
        world.flushed = 0
        world.directories[0].purge(path)

    def check(world: World, *, lost: bool) -> Callable[[Logs], None]:
        def all_or_nothing(logs: Logs) -> None:
            if logs.all:
                has_log(world, lost=True)(logs)

        return all_or_nothing

    assert crash_everywhere(scenario, check) > 10


def test_move() -> None:
    """One good copy is kept, wherever the crash was, and writes go on in between."""

    def scenario(world: World) -> None:
        source, target = world.directories
        move = Relocation(source, target, world.log, "1" * 32, NOW)
        for _ in range(2):
            while (piece := move.next_piece(NOW)) is not None:
                data = piece.read()
                piece.release()
                move.copy(data, NOW)
            world.append(2)
            world.flush()
        move.future.flush(NOW)
        world.append(1)
        world.log = move.finish(NOW)
        move.retire()
        world.append(2)
        world.flush()

    assert crash_everywhere(scenario) > 60


def test_fork() -> None:
    """The source is untouched; a fork whose topic never came to be leaves nothing behind."""

    def scenario(world: World) -> None:
        fork = Fork(world.directories[0], world.log, TopicPartition("f", 0), b"f" * 16, 7, "2" * 32)
        try:
            fork.link(NOW)
            fork.copy(OPTIONS, NOW)
        finally:
            fork.release()
        forked = fork.settle()
        assert values_of(forked) == list(enumerate(world.values))[:7]
        forked.append_as_leader(bytearray(build_batch([(NOW, b"k", b"own")])), 9, NOW)
        world.append(2)

    assert crash_everywhere(scenario) > 30


def test_fork_that_came_to_be() -> None:
    """With its topic it survives, and what it has in common with its source is the same."""

    def scenario(world: World) -> None:
        fork = Fork(world.directories[0], world.log, TopicPartition("f", 0), TOPIC_ID, 7, "2" * 32)
        fork.link(NOW)
        fork.copy(OPTIONS, NOW)
        fork.release()
        fork.settle()
        world.directories[0].write_recovery_points()
        world.disk.before("done", "")

    def check(world: World, *, lost: bool) -> Callable[[Logs], None]:
        def both(logs: Logs) -> None:
            for log in logs.all:
                values = values_of(log)
                expected = list(enumerate(world.values))
                assert values == expected[: 7 if log.topic_partition != T0 else world.flushed]

        return both

    assert crash_everywhere(scenario, check) > 10


def test_slow_flush() -> None:
    """What is appended while a flush runs is not taken for flushed by it."""
    world = World(0)
    world.append(1)
    first = log_end(world)

    def before(operation: str, path: str) -> None:
        if operation == "flush":
            world.disk.before = lambda operation, path: None
            world.append(1)

    flush = world.log.begin_flush()
    assert flush is not None
    world.disk.before = before
    flush.run()
    world.log.finish_flush(flush, NOW)
    assert world.log.recovery_point == first
    assert log_end(world) == first + 1


# Bits that rot


def stopped(records: int = 14) -> World:
    """A world whose broker has stopped, with an aborted transaction at the end of its log."""
    world = World(0, records)
    open_batch = build_batch(
        [(NOW, b"k", b"aborted")],
        producer_id=8,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    world.log.append_as_leader(bytearray(open_batch), 2, NOW)
    marker = build_control_batch(
        ControlType.ABORT, producer_id=8, producer_epoch=0, coordinator_epoch=0, now_ms=NOW
    )
    world.log.append_as_leader(bytearray(marker), 2, NOW, origin="coordinator")
    world.log.roll(NOW)
    world.log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"last")])), 3, NOW)
    for directory in world.directories:
        directory.close(NOW)
    return world


def reopen(world: World, *, clean: bool, repair: bool = False) -> PartitionLog:
    return PartitionLog.open(
        FilePool(world.disk, limit=8),
        "/a/t-0",
        T0,
        OPTIONS,
        NOW,
        clean=clean,
        topic_id=TOPIC_ID,
        repair=repair,
    )


def logs_of(world: World, suffix: str = ".log") -> dict[str, bytes]:
    """The content of every segment."""
    paths = [f"/a/t-0/{name}" for name in world.disk.list("/a/t-0") if name.endswith(suffix)]
    return {path: world.disk.read(path) or b"" for path in paths}


def cut_off(stored: dict[str, bytes], path: str, position: int) -> dict[str, bytes]:
    """What a repair must keep aside of segments, by the name that it has then."""
    kept = {path: stored[path][position:]}
    kept |= {later: data for later, data in stored.items() if later > path and data}
    return {
        f"{each.removesuffix('.log')}-{position if each == path else 0}.cut": data
        for each, data in kept.items()
    }


def flips(suffix: str) -> list[tuple[str, int, int]]:
    disk = stopped().disk
    paths = [f"/a/t-0/{name}" for name in disk.list("/a/t-0") if name.endswith(suffix)]
    return [
        (path, position, position % 8) for path in paths for position in range(disk.size(path) or 0)
    ]


UNCOVERED = {*range(8), *range(12, 16)}
"""Base offset and leader epoch: the format's CRC does not cover them, a broker writes them."""


def reopened(world: World) -> PartitionLog | str:
    """The log after an unclean stop, or why it is offline."""
    try:
        return reopen(world, clean=False)
    except DamagedLogError as failure:
        return str(failure)


def test_bits_of_a_segment() -> None:
    """After an unclean stop a wrong bit takes the log offline, with not a byte changed.

    Only the last batch of all could be torn by a crash, and is cut. A repair keeps what is before
    the wrong bit in the log, and the rest aside. Base offset and leader epoch are not covered by
    the CRC: a flip there is found where it breaks the order, and otherwise shows as missing offsets
    or as a leader epoch that is unknown.
    """
    good = values_of(reopen(stopped(), clean=True))
    found = offline = 0
    for path, position, bit in flips(".log"):
        world = stopped()
        starts = [0]
        data = world.disk.read(path)
        assert data is not None
        for header in read_headers(data):
            starts.append(starts[-1] + header.size)
        start = max(each for each in starts if each <= position)
        world.disk.flip(path, position, bit)
        flaws = list(inspect_partition(world.disk, "/a/t-0"))
        stored = logs_of(world)
        log = reopened(world)
        if isinstance(log, str):
            assert logs_of(world) == stored
            assert any(flaw.damage for flaw in flaws), (path, position)
            if position - start not in UNCOVERED:
                assert log.startswith(f"{path} at {start}: "), log
                repaired = reopen(world, clean=False, repair=True)
                left = [entry for entry in good if entry[0] < repaired.log_end_offset]
                assert values_of(repaired) == left
                assert logs_of(world, ".cut") == cut_off(stored, path, start)
            offline += 1
            continue
        values = values_of(log)
        if position - start in UNCOVERED:
            changed = [value for _, value in values] != [value for _, value in good]
            assert flaws or changed or values == good
            continue
        assert any(flaw.damage and flaw.path == path for flaw in flaws), (path, position)
        assert values == good[:-1]
        found += 1
    assert found > 50
    assert offline > 1000


def read_checked(log: PartitionLog) -> None:
    """Read the first batch as a consumer does; already to find it, its magic byte is looked at."""
    piece = log.read(0, 10)
    data = piece.read()
    piece.release()
    check_batch(data, 0)


def test_bits_of_a_segment_while_it_is_served() -> None:
    """A broker sends the bytes as they are: readers check the CRC, and find every flip."""
    world = stopped()
    log = reopen(world, clean=True)
    path = "/a/t-0/00000000000000000000.log"
    first = read_headers(world.disk.read(path) or b"")[0].size
    for position in range(first):
        if position in UNCOVERED or position in range(8, 12):
            continue  # with another length it is another batch: readers see that, too
        world.disk.flip(path, position, position % 8)
        with pytest.raises(CorruptRecordError):
            read_checked(log)
        world.disk.flip(path, position, position % 8)


def test_bits_of_an_offset_index() -> None:
    """A reader gets the right records or none; a wrong entry that is met is made again."""
    good = values_of(reopen(stopped(), clean=True))
    for path, position, bit in flips(".index"):
        world = stopped()
        world.disk.flip(path, position, bit)
        log = reopen(world, clean=True)
        for offset, value in good:
            piece = log.read(offset, 1)
            data = piece.read()
            piece.release()
            assert [r.value for r in iterate(data, control=True) if r.offset == offset] in (
                [value],
                [None],
            ), (path, position, offset)


def test_bits_of_a_time_index() -> None:
    """A search by time finds the right record, and retention knows how old a segment is."""
    log = reopen(stopped(), clean=True)
    times = [*range(NOW - 1, NOW + 20), 0]
    good = [log.find_timestamp(time) for time in times]
    newest = [segment.newest() for segment in log.segments]
    mended = 0
    for path, position, bit in flips(".timeindex"):
        world = stopped()
        world.disk.flip(path, position, bit)
        log = reopen(world, clean=True)
        assert [log.find_timestamp(time) for time in times] == good, (path, position)
        assert [segment.newest() for segment in log.segments] == newest, (path, position)
        mended += any(segment.indexes_changed for segment in log.segments)
    assert mended > 20


def test_bits_of_an_index_are_found_by_inspection() -> None:
    for suffix in (".index", ".timeindex"):
        for path, position, bit in flips(suffix):
            world = stopped()
            world.disk.flip(path, position, bit)
            flaws = [flaw for flaw in inspect_partition(world.disk, "/a/t-0") if flaw.damage]
            assert [flaw.path for flaw in flaws] == [path], (path, position, flaws)
            reopen(world, clean=False).close(NOW)
            assert [flaw for flaw in inspect_partition(world.disk, "/a/t-0") if flaw.damage] == []


def test_bits_of_a_transaction_index_are_found_by_inspection() -> None:
    """All that can be: a beginning in an earlier segment, and how far to search, are said once."""
    disk = stopped().disk
    [name] = [name for name in disk.list("/a/t-0") if name.endswith(".txnindex")]

    def damaged() -> list[str]:
        return [flaw.path for flaw in inspect_partition(disk, "/a/t-0") if flaw.damage]

    path = f"/a/t-0/{name}"
    begins_earlier, searches_less = (17, 3), (33, 4)  # at 6 instead of 14, up to 0 instead of 16
    for position in range(34):
        for bit in range(8):
            assert damaged() == []
            disk.flip(path, position, bit)
            unseen = (position, bit) in (begins_earlier, searches_less)
            assert damaged() == ([] if unseen else [path]), (position, bit)
            disk.flip(path, position, bit)


def test_bits_of_a_transaction_index() -> None:
    """After an unclean stop it is made again from the markers."""
    expected = reopen(stopped(), clean=True).aborted_transactions(0, 100)
    assert len(expected) == 1
    for path, position, bit in flips(".txnindex"):
        world = stopped()
        world.disk.flip(path, position, bit)
        assert reopen(world, clean=False).aborted_transactions(0, 100) == expected


def test_bits_of_a_snapshot() -> None:
    """The CRC gives it away, and the state is made again from the batches."""
    for path, position, bit in flips(".snapshot"):
        for clean in (True, False):
            world = stopped()
            world.disk.flip(path, position, bit)
            flaws = [flaw for flaw in inspect_partition(world.disk, "/a/t-0") if flaw.damage]
            assert [flaw.path for flaw in flaws] == [path]
            entry = reopen(world, clean=clean).producers.get(7)
            assert entry is not None
            assert entry.last_sequence == 13


def test_bits_of_the_leader_epochs() -> None:
    """It is text without a checksum: inspection finds what contradicts the batches."""
    true = list(reopen(stopped(), clean=True).leader_epochs)
    for path, position, bit in flips("leader-epoch-checkpoint"):
        world = stopped()
        world.disk.flip(path, position, bit)
        flaws = [flaw for flaw in inspect_partition(world.disk, "/a/t-0") if flaw.path == path]
        epochs = list(reopen(world, clean=True).leader_epochs)
        assert flaws or epochs == true, (position, epochs)


def test_bits_of_a_checkpoint() -> None:
    """A checkpoint that makes no sense is left out of account: everything is checked instead."""
    size = stopped().disk.size(f"/a/{RECOVERY_POINTS}") or 0
    found = 0
    for position in range(size):
        world = stopped()
        world.disk.flip(f"/a/{RECOVERY_POINTS}", position, position % 8)
        world.disk.unlink("/a/.kafka_cleanshutdown")
        found += any(flaw.damage for flaw in inspect_directory(world.disk, "/a"))
        directory = LogDirectory(FilePool(world.disk), "/a")
        directory.load(lambda topic: OPTIONS, NOW)
        assert len(values_of(directory.logs[T0])) == 16
    assert found > size // 2

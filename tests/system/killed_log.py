"""Recovers or compacts a log of every format in child processes that SIGKILL ends.

    python killed_log.py recovery|compaction DIRECTORY

The first child is killed before the first system call that changes a file or a name, the next one
before the second, and so on, until one comes to its end: between two changes it does not matter
when. After each, what is left on the disk is checked and opened again. Prints how many were killed.
What was written outlives a process without being flushed, so flushes are left out: they take long.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.old_segments import NOW, Row, every_format, segment_name

from barnabas.config.topic import TopicOptions
from barnabas.log import files as log_files
from barnabas.log.compaction.scheduler import examine
from barnabas.log.compaction.steps import Means, compact, run
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.conversion import to_batches

T0 = TopicPartition("t", 0)
SEGMENTS, ROWS = every_format()
OPTIONS = TopicOptions.parse(
    {"cleanup.policy": "compact", "segment.bytes": "4000", "index.interval.bytes": "300"}
)
CHANGES = ("pwrite", "ftruncate", "utime", "mkdir", "makedirs", "replace", "link", "unlink")


class KillingSystem:
    """The calls of `os`; before one that changes something the process is killed."""

    def __init__(self, before: int = -1) -> None:
        self._left = before

    def __getattr__(self, name: str) -> Any:
        if name == "fsync":
            return _no_flush
        found = getattr(os, name)
        return self._counted(found) if name in CHANGES else found

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        makes = flags & (os.O_CREAT | os.O_TRUNC)
        return (self._counted(os.open) if makes else os.open)(path, flags, mode)

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
            return call(*arguments, **named)

        return counted

    def install(self) -> None:
        log_files.os = self  # type: ignore[assignment, attr-defined]
        log_files._sync_data = _no_flush


def _no_flush(descriptor: int) -> None:
    """Stand in for fsync."""


def opened(data: Path) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory(FilePool(DiskFiles()), str(data))
    directory.load(lambda topic: OPTIONS, NOW)
    log = directory.logs[T0]
    log.set_high_watermark(log.log_end_offset)
    return directory, log


def compact_once(directory: LogDirectory, log: PartitionLog) -> None:
    found = examine(log, NOW)
    if found is None:
        return
    means, old = Means(24 * 1000, 0.9, 512), []
    done = run(compact(log, found.first_dirty, found.end, means, NOW, unlink_later=old.extend))
    log.cleaned_offset = done.end_offset
    directory.write_cleaned_offsets()
    for path in old:
        DiskFiles().unlink(path)


def rows_of(log: PartitionLog) -> list[Row]:
    rows, position = [], log.log_start_offset
    while position < log.log_end_offset:
        piece = log.read(position, 1 << 20)
        batches = to_batches(piece.read())
        piece.release()
        rows += [Row(r.offset, r.timestamp, r.key, r.value) for r in iterate(batches)]
        position = read_headers(batches)[-1].next_offset
    return rows


def stored(data: Path) -> dict[int, bytes]:
    files = {int(path.stem): path.read_bytes() for path in (data / str(T0)).glob("*.log")}
    return {base: content for base, content in files.items() if content}


def recover(data: Path) -> None:
    directory, _ = opened(data)
    directory.close(NOW)


def check_recovered(data: Path) -> None:
    assert stored(data) == SEGMENTS
    directory, log = opened(data)
    assert rows_of(log) == ROWS
    directory.close(NOW)
    assert stored(data) == SEGMENTS


def roll(data: Path) -> None:
    """Let all segments be closed, flushed and checkpointed, so that they can be compacted."""
    directory, log = opened(data)
    log.roll(NOW)
    log.flush(NOW)
    directory.write_recovery_points()
    directory.abandon()


def compact_first(data: Path) -> None:
    compact_once(*opened(data))


def check_compacted(data: Path) -> None:
    newest = {row.key: row for row in ROWS}
    expected = sorted(newest.values())
    directory, log = opened(data)
    found = rows_of(log)
    assert log.log_end_offset == len(ROWS)
    assert [row for row in found if row in expected] == expected
    assert set(found) <= set(ROWS)
    for base, content in stored(data).items():
        assert content == SEGMENTS.get(base) or {h.magic for h in read_headers(content)} == {2}
    compact_once(directory, log)
    assert rows_of(log) == expected
    directory.close(NOW)


STORIES = {
    "recovery": (lambda data: None, recover, check_recovered),
    "compaction": (roll, compact_first, check_compacted),
}


def main(story: str, directory: Path) -> None:
    prepare, act, check = STORIES[story]
    KillingSystem().install()
    made = directory / "made"
    (made / str(T0)).mkdir(parents=True)
    for base, content in SEGMENTS.items():
        (made / str(T0) / segment_name(base)).write_bytes(content)
    prepare(made)
    for number in itertools.count():
        data = directory / "data"
        shutil.copytree(made, data)
        child = os.fork()
        if not child:
            KillingSystem(number).install()
            act(data)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGKILL), f"call {number}: {code}"
        check(data)
        shutil.rmtree(data)
        if code == 0:
            print(number)
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

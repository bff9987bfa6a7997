"""A log on its way to another directory that does not arrive."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.relocation import Relocation
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
T0 = TopicPartition("t", 0)
OPTIONS = TopicOptions.parse({})


def test_given_up_when_it_has_its_name_already() -> None:
    """The disk refuses the last step: the copy goes, and the next move finds its place free."""
    disk = SimulatedDisk(Random(0), lambda: NOW)
    source, target = (LogDirectory(FilePool(disk, limit=8), path) for path in ("/a", "/b"))
    log = source.open_log(T0, OPTIONS, NOW, topic_id=b"t" * 16)
    log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"v")])), 1, NOW)
    move = Relocation(source, target, log, "1" * 32, NOW)

    def before(operation: str, path: str) -> None:
        if (operation, path) == ("flush_dir", "/b") and disk.is_dir("/b/t-0"):
            raise StorageError("cannot flush directory /b")

    disk.before = before
    with pytest.raises(StorageError):
        move.finish(NOW)
    disk.before = lambda operation, path: None
    assert target.logs == {}
    target.purge(move.abandon())
    assert [name for name in disk.list("/b") if name.startswith("t-0")] == []
    again = Relocation(source, target, log, "2" * 32, NOW)
    moved = again.finish(NOW)
    source.purge(again.retire())
    assert (moved.directory, moved.log_end_offset) == ("/b/t-0", 1)
    assert [name for name in disk.list("/a") if name.startswith("t-0")] == []

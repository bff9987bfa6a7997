"""Machines crash at any time: what was flushed survives, the rest is whole or gone.

The disk is the simulated one, which loses, tears and reorders everything that was not flushed.
"""

from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log import partition_log
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
T0 = TopicPartition("t", 0)
OPTIONS = TopicOptions.parse({"segment.bytes": "700", "index.interval.bytes": "150"})


def read_values(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        piece = log.read(position, 300)
        data = piece.read()
        piece.release()
        found += [(r.offset, r.value) for r in iterate(data, control=True) if r.offset >= position]
        position = read_headers(data)[-1].next_offset
    return found


class Life:
    """One broker on one disk, from start to crash, with a model of what it promised."""

    def __init__(self, disk: SimulatedDisk, random: Random) -> None:
        self.disk, self.random = disk, random
        self.written: list[tuple[int, bytes | None]] = []
        self.flushed = 0  # offset up to which everything must survive
        self.sequence = 0
        self.start()

    def start(self) -> None:
        self.directory = LogDirectory(FilePool(self.disk, limit=4), "/data")
        self.directory.load(lambda topic: OPTIONS, NOW)
        self.log = self.directory.open_log(T0, OPTIONS, NOW, topic_id=bytes(range(16)))
        end = self.log.log_end_offset
        assert end >= self.flushed, "a flushed record is lost"
        self.written = [entry for entry in self.written if entry[0] < end]
        assert read_values(self.log) == self.written
        if self.flushed:
            assert self.log.topic_id == bytes(range(16))
        self.check_state()
        entry = self.log.producers.get(7)
        self.sequence = 0 if entry is None else entry.last_sequence + 1

    def check_state(self) -> None:
        """Compare producers, epochs and aborted transactions with what the batches say."""
        log = self.log
        sequences, epochs, aborted, opened = -1, [], [], None
        for segment in log.segments:
            for _, header in segment.headers():
                if not epochs or header.leader_epoch > epochs[-1][0]:
                    epochs.append((header.leader_epoch, header.base_offset))
                if header.attributes & 0x20:
                    if opened is not None and self.written[header.base_offset][1][-1:] == b"A":
                        aborted.append((opened, header.base_offset))
                    opened = None
                elif header.producer_id == 7:
                    sequences = header.base_sequence + header.last_offset_delta
                    if header.attributes & 0x10 and opened is None:
                        opened = header.base_offset
        entry = log.producers.get(7)
        assert (-1 if entry is None else entry.last_sequence) == sequences
        assert log.producers.has_open_transaction(7) == (opened is not None)
        assert [e for e, _ in log.leader_epochs] == [e for e, _ in epochs]
        found = log.aborted_transactions(0, log.log_end_offset)
        assert [(e.first_offset, e.last_offset) for e in found] == aborted

    def append(self) -> None:
        log, random = self.log, self.random
        epoch = max(log.leader_epochs.latest, 0) + (random.random() < 0.1)
        opened = log.producers.has_open_transaction(7)
        if opened and random.random() < 0.4:
            # The value of a marker holds its coordinator epoch: 'A' there names the aborts.
            kind = random.choice([ControlType.ABORT, ControlType.COMMIT])
            data = build_control_batch(
                kind,
                producer_id=7,
                producer_epoch=0,
                coordinator_epoch=ord("A") if kind is ControlType.ABORT else ord("C"),
                now_ms=NOW,
            )
            origin = "coordinator"
            log.producers.get(7).coordinator_epoch = -1
        else:
            rows = [(NOW, b"k", random.randbytes(5)) for _ in range(random.randint(1, 3))]
            data = build_batch(
                rows,
                producer_id=7,
                producer_epoch=0,
                base_sequence=self.sequence,
                transactional=opened or random.random() < 0.3,
            )
            self.sequence += len(rows)
            origin = "client"
        appended = log.append_as_leader(data, epoch, NOW, origin=origin)
        records = list(iterate(data, control=True))
        self.written += [(appended.first_offset + r.offset, r.value) for r in records]

    def flush(self) -> None:
        self.log.flush(NOW)
        self.flushed = self.log.log_end_offset

    def truncate(self) -> None:
        end = self.log.log_end_offset
        target = self.random.randint(max(end - 4, 0), end)
        self.log.truncate_to(target, NOW)
        end = self.log.log_end_offset
        self.flushed = min(self.flushed, end)
        self.written = [entry for entry in self.written if entry[0] < end]
        entry = self.log.producers.get(7)
        self.sequence = 0 if entry is None else entry.last_sequence + 1
        # Whoever truncates and goes on must not let an older recovery point count.
        self.directory.write_recovery_points()


@pytest.mark.parametrize("seed", range(50))
def test_flushed_records_survive_any_crash_and_the_rest_is_whole(seed):
    random = Random(seed)
    disk = SimulatedDisk(random, lambda: NOW)
    life = Life(disk, random)
    for _ in range(60):
        act = random.random()
        if act < 0.70:
            life.append()
        elif act < 0.80:
            life.flush()
        elif act < 0.84:
            life.directory.write_recovery_points()
        elif act < 0.87:
            life.truncate()
        elif act < 0.90:
            life.log.roll(NOW)
        elif act < 0.93:
            life.directory.close(NOW)
            life.flushed = life.written[-1][0] + 1 if life.written else 0
            if random.random() < 0.5:
                disk.crash()
            life.start()
        else:
            if random.random() < 0.3:
                disk.kill()
            else:
                disk.crash()
            life.start()


class FailingDisk(SimulatedDisk):
    """A disk on which one operation fails, counted from when `countdown` is set."""

    countdown: int | None = None

    def check(self, operation: str, path: str) -> None:
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown < 0:
                self.countdown = None
                raise StorageError(f"cannot {operation} {path}: injected")
        super().check(operation, path)


@pytest.mark.parametrize("number", range(40))
def test_one_failing_operation_fails_one_call_and_nothing_else(number, monkeypatch):
    """Appends, rolls and flushes can be tried again after any failure; nothing is lost."""
    monkeypatch.setattr(partition_log, "THOROUGH", False)  # its reads are not the log's own
    random = Random(1)
    disk = FailingDisk(random, lambda: NOW)
    life = Life(disk, random)
    for _ in range(4):
        life.append()
    disk.countdown = number
    failures = 0
    for step in range(24):
        before = life.sequence
        try:
            if step % 8 == 7:
                life.flush()
            else:
                life.append()
        except StorageError:
            failures += 1
            life.sequence = before
        disk.countdown, left = None, disk.countdown
        assert read_values(life.log) == life.written
        disk.countdown = left
    disk.countdown = None
    life.check_state()
    assert failures == 1
    life.flush()
    disk.crash()
    life.start()
    life.directory.close(NOW)
    life.start()
    assert life.directory.clean

"""The log of one partition, from append to read, through rolls, restarts and truncations."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicOptions
from barnabas.kernels import assign_offsets
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch

NOW = 1_700_000_000_000


def refused(code):
    return pytest.raises(RequestError, check=lambda failure: failure.code is code)


def marker(kind, producer=7, epoch=0, coordinator_epoch=0):
    return bytearray(
        build_control_batch(
            kind,
            producer_id=producer,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            now_ms=NOW,
        )
    )


def transactional(batch, sequence, producer=7, count=1):
    return batch(
        count, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
    )


# -- appending ----------------------------------------------------------------------------------


def test_the_leader_assigns_offsets_and_epoch(open_log, batch):
    log = open_log()
    first = log.append_as_leader(batch(3), 4, NOW)
    second = log.append_as_leader(batch(2), 4, NOW)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset) == (3, 4)
    assert (second.append_time_ms, second.log_start_offset, second.duplicate) == (-1, 0, False)
    assert log.log_end_offset == 5
    piece = log.read(0, 10_000)
    data = piece.read()
    piece.release()
    assert [(h.base_offset, h.leader_epoch) for h in read_headers(data)] == [(0, 4), (3, 4)]
    assert len(list(iterate(data))) == 5
    assert list(log.leader_epochs) == [(4, 0)]


def test_the_bytes_in_the_file_are_those_of_the_reference(open_log, disk):
    """Kafka's own bytes: two records, appended by the leader of epoch 3 at offset 100."""
    sent = bytes.fromhex(
        "00 00 00 00 00 00 00 00 00 00 00 4f ff ff ff ff"
        "02 9d 16 3e f9 00 00 00 00 00 01 00 00 01 8b cf"
        "e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff"
        "ff ff ff ff ff ff ff ff ff 00 00 00 02 1a 00 00"
        "00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01"
        "04 76 32 04 02 68 02 78 02 6e 01"
    )
    log = open_log(log_start_offset=100)
    log.append_as_leader(sent, 3, NOW)
    stored = disk.read(log.segments[0].path(".log"))
    assert stored[:16] == bytes.fromhex("00 00 00 00 00 00 00 64 00 00 00 4f 00 00 00 03")
    assert stored[16:] == sent[16:]
    timed = open_log(message_timestamp_type="LogAppendTime")
    answer = timed.append_as_leader(sent, 3, NOW + 777)
    assert answer.append_time_ms == NOW + 777
    stamped = disk.read(log.segments[0].path(".log"))[91:]
    assert stamped[16:23] == bytes.fromhex("02 d3 67 87 bb 00 08")


def test_append_time_of_a_duplicate_is_that_of_its_first_copy(open_log, batch):
    log = open_log(message_timestamp_type="LogAppendTime")
    identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(2, **identity), 0, NOW)
    again = log.append_as_leader(batch(2, **identity), 0, NOW + 99)
    assert again == (0, 1, NOW, 0, True)
    assert log.log_end_offset == 2


def test_a_refused_batch_leaves_no_trace(open_log, batch):
    log = open_log()
    identity = {"producer_id": 7, "producer_epoch": 0}
    log.append_as_leader(batch(2, **identity, base_sequence=0), 0, NOW)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        log.append_as_leader(batch(1, **identity, base_sequence=5), 0, NOW)
    broken = batch(1)
    broken[-1] ^= 1
    with refused(ErrorCode.CORRUPT_MESSAGE):
        log.append_as_leader(broken, 0, NOW)
    assert (log.log_end_offset, log.producers.get(7).last_sequence) == (2, 1)


@pytest.mark.parametrize("room", [0, 1, 50, 80])
def test_a_full_disk_refuses_whole_batches_and_recovers(open_log, batch, disk, read_all, room):
    log = open_log()
    identity = {"producer_id": 7, "producer_epoch": 0}
    log.append_as_leader(batch(1, **identity, base_sequence=0), 0, NOW)
    disk.room = room
    with pytest.raises(StorageError):
        log.append_as_leader(batch(2, **identity, base_sequence=1), 0, NOW)
    assert log.log_end_offset == 1
    assert read_all(log) == [(0, b"v" * 10)]
    disk.room = None
    assert log.append_as_leader(batch(2, **identity, base_sequence=1), 0, NOW).first_offset == 1
    assert [offset for offset, _ in read_all(log)] == [0, 1, 2]


@pytest.mark.parametrize("room", range(0, 400, 25))
def test_a_disk_that_fills_up_while_rolling(open_log, batch, disk, read_all, room):
    log = open_log(segment_bytes=200, index_interval_bytes=1)
    disk.room = room
    taken = 0
    for _ in range(6):
        try:
            log.append_as_leader(batch(), 0, NOW)
            taken += 1
        except StorageError:
            break
    assert [offset for offset, _ in read_all(log)] == list(range(taken))
    disk.room = None
    for _ in range(3):
        log.append_as_leader(batch(), 0, NOW)
    assert [offset for offset, _ in read_all(log)] == list(range(taken + 3))
    log.close(NOW)
    assert open_log(segment_bytes=200).log_end_offset == taken + 3


def test_after_a_failed_append_a_clean_stop_leaves_whole_batches(open_log, batch, disk):
    log = open_log()
    log.append_as_leader(batch(), 0, NOW)
    size = log.size_bytes
    disk.room = 40
    with pytest.raises(StorageError):
        log.append_as_leader(batch(), 0, NOW)
    disk.room = None
    log.close(NOW)
    assert disk.size(log.segments[0].path(".log")) == size
    assert open_log().log_end_offset == 1


def test_a_follower_takes_batches_with_gaps_and_leaves_out_a_cut_one(open_log, read_all):
    log = open_log()
    batches = [
        build_batch([(NOW, b"k", b"a")] * 2, base_offset=5, leader_epoch=1),
        build_batch([(NOW, b"k", b"b")], base_offset=9, leader_epoch=3),
    ]
    assert log.append_as_follower(b"".join(batches) + batches[0][:70], NOW) == 2
    assert log.log_end_offset == 10
    assert read_all(log) == [(5, b"a"), (6, b"a"), (9, b"b")]
    assert read_all(log, 7) == [(9, b"b")]
    assert list(log.leader_epochs) == [(1, 5), (3, 9)]
    with pytest.raises(CorruptRecordError, match="offset 5"):
        log.append_as_follower(batches[0], NOW)
    damaged = bytearray(build_batch([(NOW, b"k", b"c")], base_offset=10))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(damaged, NOW)
    assert log.log_end_offset == 10


@pytest.mark.parametrize("follows", [False, True])
def test_an_abort_whose_index_cannot_be_read_leaves_no_trace(open_log, batch, disk, follows):
    """Were it in the log and not in the index, its records would count as committed."""
    log = open_log()
    for number in range(2):
        log.append_as_leader(transactional(batch, number), 0, NOW)
        log.append_as_leader(marker(ControlType.ABORT), 0, NOW, origin="coordinator")
    log.append_as_leader(transactional(batch, 2), 0, NOW)
    log.close(NOW)
    log = open_log()
    log.segments[0].drop_indexes()
    ending = marker(ControlType.ABORT)
    disk.unreadable = ".txnindex"
    before = (log.log_end_offset, log.size_bytes, log.last_stable_offset)

    def append():
        if follows:
            assign_offsets(ending, 0, 5, 0)
            log.append_as_follower(ending, NOW)
        else:
            log.append_as_leader(ending, 0, NOW, origin="coordinator")

    with pytest.raises(StorageError):
        append()
    assert (log.log_end_offset, log.size_bytes, log.last_stable_offset) == before
    disk.unreadable = None
    append()
    found = log.aborted_transactions(0, 6)
    assert [(each.first_offset, each.last_offset) for each in found] == [(0, 1), (2, 3), (4, 5)]


def unreadable_marker(offset):
    """A control batch with the right CRC whose key is too short to say what ended."""
    return build_batch(
        [(NOW, b"\0", b"")], base_offset=offset, producer_id=7, producer_epoch=0, control=True
    )


def test_a_follower_that_gets_an_unreadable_marker_takes_nothing(open_log, read_all):
    log = open_log()
    first, second = (build_batch([(NOW, b"k", b"v%d" % n)], base_offset=n) for n in range(2))
    with pytest.raises(CorruptRecordError, match="control record"):
        log.append_as_follower(first + unreadable_marker(1), NOW)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    assert log.append_as_follower(first + second, NOW) == 2
    assert read_all(log) == [(0, b"v0"), (1, b"v1")]


def test_a_follower_is_a_copy_of_its_leader(tmp_path, batch, options):
    pool = FilePool(DiskFiles())
    leader, follower = (
        PartitionLog.open(pool, f"{tmp_path}/{n}", TopicPartition("t", 0), options(), NOW)
        for n in "ab"
    )
    leader.append_as_leader(transactional(batch, 0, count=3), 1, NOW)
    leader.append_as_leader(batch(2), 1, NOW)
    leader.append_as_leader(marker(ControlType.ABORT), 2, NOW, origin="coordinator")
    piece = leader.read(0, 10_000)
    follower.append_as_follower(piece.read(), NOW)
    piece.release()
    assert follower.log_end_offset == leader.log_end_offset
    assert list(follower.leader_epochs) == list(leader.leader_epochs)
    assert follower.aborted_transactions(0, 9) == leader.aborted_transactions(0, 9) != []
    assert follower.producers.get(7).last_sequence == 2
    leader.release()
    follower.release()


# -- rolling ------------------------------------------------------------------------------------


def test_segments_roll_by_size_and_reads_stay_inside_one(open_log, batch):
    log = open_log(segment_bytes=300)
    for _ in range(10):
        log.append_as_leader(batch(), 0, NOW)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    assert all(segment.size_bytes <= 300 for segment in log.segments)
    piece = log.read(0, 1 << 20)
    assert read_headers(piece.read())[-1].next_offset == bases[1]
    piece.release()


def test_segments_roll_by_time_less_the_jitter(open_log, batch):
    log = open_log(segment_ms=1000, segment_jitter_ms=500, random=lambda: 0.5)
    log.append_as_leader(batch(at=NOW), 0, NOW)
    log.append_as_leader(batch(at=NOW + 750), 0, NOW)
    assert len(log.segments) == 1
    log.append_as_leader(batch(at=NOW + 751), 0, NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_compacted_log_also_rolls_by_the_compaction_lag(open_log, batch):
    log = open_log(cleanup_policy="compact", max_compaction_lag_ms=1000)
    log.append_as_leader(batch(at=NOW), 0, NOW)
    log.append_as_leader(batch(at=NOW + 1000), 0, NOW)
    assert len(log.segments) == 1
    log.append_as_leader(batch(at=NOW + 1001), 0, NOW)
    assert len(log.segments) == 2


def test_a_roll_writes_indexes_and_a_snapshot(open_log, batch, disk):
    log = open_log(index_interval_bytes=1)
    for sequence in range(3):
        log.append_as_leader(batch(producer_id=7, producer_epoch=0, base_sequence=sequence), 0, NOW)
    log.roll(NOW)
    assert log.roll(NOW) is log.segments[-1]
    names = disk.list(log.directory)
    assert f"{3:020d}.snapshot" in names
    assert f"{0:020d}.index" in names
    assert f"{3:020d}.log" in names
    assert log.has_finished_segment_to_flush
    log.flush(NOW, up_to=3)
    assert not log.has_finished_segment_to_flush


# -- reading ------------------------------------------------------------------------------------


def test_a_read_ends_before_the_batch_that_reaches_the_bound(open_log, batch, read_all):
    log = open_log(segment_bytes=400)
    for _ in range(20):
        log.append_as_leader(batch(2), 0, NOW)
    for bound in range(41):
        whole = bound // 2 * 2
        assert [o for o, _ in read_all(log, 0, max_offset=bound)] == list(range(whole))
    assert len(read_all(log, 0, max_offset=99)) == 40


def test_the_first_batch_is_whole_if_asked_for(open_log, batch):
    log = open_log()
    log.append_as_leader(batch(1, size=500), 0, NOW)
    log.append_as_leader(batch(1, size=500), 0, NOW)
    half = log.size_bytes // 2
    piece = log.read(0, 1)
    assert (piece.size, piece.first_batch_incomplete) == (half, False)
    piece.release()
    piece = log.read(0, 100, at_least_one=False)
    assert (piece.size, piece.first_batch_incomplete) == (100, True)
    piece.release()
    piece = log.read(0, half + 1)
    assert piece.size == half + 1
    piece.release()
    assert log.read(0, 0, at_least_one=False).size == 0


def test_reading_at_the_end_and_outside(open_log, batch):
    log = open_log(log_start_offset=5)
    assert log.read(5, 100).size == 0
    log.append_as_leader(batch(2), 0, NOW)
    assert log.read(7, 100).size == 0
    for offset in (4, 8, -1):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            log.read(offset, 100)
    assert log.read(6, 100, max_offset=6).size == 0
    assert log.read(6, 100, max_offset=5).size == 0


def test_reading_the_tail_opens_no_second_file(open_log, batch, disk):
    log = open_log(index_interval_bytes=1)
    for _ in range(100):
        log.append_as_leader(batch(), 0, NOW)
    before = disk.opened
    for offset in range(100):
        log.read(offset, 100, max_offset=99).release()
    assert disk.opened == before


# -- offsets ------------------------------------------------------------------------------------


def test_the_high_watermark_stays_inside_the_log(open_log, batch):
    log = open_log(log_start_offset=3)
    log.append_as_leader(batch(4), 0, NOW)
    log.set_high_watermark(100)
    assert log.high_watermark == 7
    log.set_high_watermark(0)
    assert log.high_watermark == 3


def test_the_last_stable_offset_follows_transactions(open_log, batch):
    log = open_log()

    def advance():
        log.set_high_watermark(log.log_end_offset)
        return log.last_stable_offset

    log.append_as_leader(batch(2), 0, NOW)
    assert advance() == 2
    log.append_as_leader(transactional(batch, 0, producer=7), 0, NOW)
    log.append_as_leader(transactional(batch, 0, producer=8), 0, NOW)
    log.append_as_leader(batch(), 0, NOW)
    assert advance() == 2
    log.append_as_leader(marker(ControlType.COMMIT, 7), 0, NOW, origin="coordinator")
    assert log.last_stable_offset == 2
    assert advance() == 3
    log.append_as_leader(marker(ControlType.ABORT, 8), 0, NOW, origin="coordinator")
    assert advance() == 7


def test_aborted_transactions_of_a_range(open_log, batch):
    log = open_log(segment_bytes=300)
    for number, producer in enumerate((7, 8, 9)):
        log.append_as_leader(transactional(batch, 0, producer), 0, NOW)
        kind = ControlType.COMMIT if number == 1 else ControlType.ABORT
        log.append_as_leader(marker(kind, producer), 0, NOW, origin="coordinator")
    assert len(log.segments) > 1

    def ids(start, end):
        return [entry.producer_id for entry in log.aborted_transactions(start, end)]

    assert ids(0, 6) == [7, 9]
    assert ids(0, 1) == [7]
    assert ids(2, 4) == []
    assert ids(1, 5) == [7, 9]
    assert ids(5, 6) == [9]
    log.close(NOW)
    again = open_log(segment_bytes=300)
    assert [e.producer_id for e in again.aborted_transactions(0, 6)] == [7, 9]


def test_the_upper_bound_of_a_slice_is_at_or_above_its_batches(open_log, batch):
    log = open_log(segment_bytes=2000, index_interval_bytes=200)
    for _ in range(60):
        log.append_as_leader(batch(), 0, NOW)
    for offset in range(0, 60, 7):
        piece = log.read(offset, 150)
        last = read_headers(piece.read())[-1].last_offset
        assert last < log.upper_bound_offset(piece) <= 60
        piece.release()


def test_deleting_records_raises_the_log_start(open_log, batch):
    log = open_log()
    for epoch in (1, 2):
        log.append_as_leader(batch(3), epoch, NOW)
    log.set_high_watermark(5)
    for offset in (6, -1):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            log.delete_records_before(offset)
    log.delete_records_before(4)
    log.delete_records_before(2)
    assert (log.log_start_offset, list(log.leader_epochs)) == (4, [(2, 4)])
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(3, 100)
    assert log.append_as_leader(batch(), 2, NOW).log_start_offset == 4


# -- truncation ---------------------------------------------------------------------------------


def test_truncation_is_by_whole_batches_and_everything_follows(open_log, batch, read_all, disk):
    log = open_log(segment_bytes=400)
    for index in range(10):
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 2 * index}
        log.append_as_leader(batch(2, **identity), 1 + index // 5, NOW + index)
    log.set_high_watermark(20)
    log.flush(NOW)
    log.truncate_to(9, NOW)
    assert log.log_end_offset == 8
    assert (log.high_watermark, log.recovery_point) == (8, 8)
    assert [o for o, _ in read_all(log)] == list(range(8))
    assert list(log.leader_epochs) == [(1, 0)]
    assert log.producers.get(7).last_sequence == 7
    assert disk.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n1\n1 0\n"
    log.append_as_leader(batch(2, producer_id=7, producer_epoch=0, base_sequence=8), 3, NOW)
    log.close(NOW)
    again = open_log(segment_bytes=400)
    assert again.log_end_offset == 10
    assert list(again.leader_epochs) == [(1, 0), (3, 8)]


def test_truncating_above_the_end_only_cuts_epochs(open_log, batch):
    log = open_log()
    log.append_as_leader(batch(3), 1, NOW)
    log.leader_epochs.assign(2, 3)
    log.truncate_to(7, NOW)
    assert (log.log_end_offset, list(log.leader_epochs)) == (3, [(1, 0)])


def test_truncating_below_the_first_segment_starts_anew(open_log, batch, read_all):
    log = open_log(log_start_offset=10)
    log.append_as_leader(batch(3), 1, NOW)
    log.truncate_to(4, NOW)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (4, 4, 4)
    log.append_as_leader(batch(), 2, NOW)
    assert read_all(log) == [(4, b"v" * 10)]
    log.truncate_all(50, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


# -- histories ----------------------------------------------------------------------------------

operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 200)),
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 200)),
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
        st.tuples(st.just("stop"), st.just(0), st.just(0)),
        st.tuples(st.just("crash"), st.just(0), st.just(0)),
        st.tuples(st.just("flush"), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("start"), st.integers(0, 60), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(operations, st.integers(0, 2**32))
def test_any_history_matches_a_plain_list(tmp_path_factory, history, seed):
    directory = f"{tmp_path_factory.mktemp('log')}/t-0"
    pool = FilePool(DiskFiles(), limit=3)
    options = TopicOptions.parse({"segment.bytes": "1000", "index.interval.bytes": "150"})
    draw = random.Random(seed)
    model: list[tuple[int, int, bytes]] = []  # (first offset of the batch, offset, value)
    start = sequence = 0

    def reopen(**how):
        return PartitionLog.open(pool, directory, TopicPartition("t", 0), options, NOW, **how)

    log = reopen()
    for number, (kind, count, size) in enumerate(history):
        if kind == "append":
            rows = [(NOW + number, b"k", bytes([number]) * size) for _ in range(count)]
            data = build_batch(rows, producer_id=1, producer_epoch=0, base_sequence=sequence)
            first = log.append_as_leader(data, number, NOW).first_offset
            assert log.append_as_leader(data, number, NOW).duplicate
            model += [(first, first + i, rows[i][2]) for i in range(count)]
            sequence += count
        elif kind == "roll":
            log.roll(NOW)
        elif kind == "flush":
            log.flush(NOW)
            assert log.recovery_point == log.log_end_offset
        elif kind == "stop":
            log.close(NOW)
            log = reopen(log_start_offset=start)
        elif kind == "crash":
            point = log.recovery_point
            log.release()
            log = reopen(clean=False, recovery_point=point, log_start_offset=start)
        elif kind == "truncate" and count >= start:
            log.truncate_to(count, NOW)
            cut = next((first for first, offset, _ in model if offset >= count), None)
            if cut is not None:
                model = [entry for entry in model if entry[0] < cut]
                entry = log.producers.get(1)
                sequence = 0 if entry is None else entry.last_sequence + 1
                start = min(start, log.log_end_offset)
        elif kind == "start" and start < count <= log.log_end_offset:
            log.set_high_watermark(log.log_end_offset)
            log.delete_records_before(count)
            start = count
        end = model[-1][1] + 1 if model else None
        assert log.log_end_offset == (end if end is not None else log.log_end_offset)
        assert log.log_start_offset == start
        assert log.size_bytes == sum(segment.file.get().size() for segment in log.segments)
        probe = draw.randint(start, log.log_end_offset)
        piece = log.read(probe, draw.choice([1, 200, 5000]))
        found = [(r.offset, r.value) for r in iterate(piece.read()) if r.offset >= probe]
        piece.release()
        expected = [(offset, value) for _, offset, value in model if offset >= probe]
        assert found == expected[: len(found)]
        assert bool(found) == bool(expected)
        entry = log.producers.get(1)
        if model:
            assert entry.last_sequence == sequence - 1
        target = NOW + draw.randint(0, len(history))
        hit = log.find_timestamp(target)
        times = [(o, NOW + v[0]) for _, o, v in model if v and o >= start]
        if all(v for _, _, v in model):
            assert (hit and hit.offset) == next((o for o, t in times if t >= target), None)
    log.release()
    assert pool.open_count == 0

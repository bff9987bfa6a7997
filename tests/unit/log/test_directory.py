"""One disk: its lock, its identity, how it was left, and all logs on it."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.log.directory import LogDirectory, parse_name
from barnabas.log.file_pool import FilePool
from barnabas.model.errors import CorruptFileError, StorageError
from barnabas.model.ids import TopicPartition

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
T0, T1 = TopicPartition("t", 0), TopicPartition("with-dash.and_dot", 11)


@pytest.fixture
def start(pool, tmp_path, options):
    """Start on the same disk again and again; what is still open at the end is abandoned."""
    started = []

    def make(**settings):
        directory = LogDirectory(pool, f"{tmp_path}/data")
        started.append(directory)
        directory.load(lambda topic: options(**settings), NOW)
        return directory

    yield make
    for directory in started:
        directory.abandon()


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", T0),
        ("with-dash.and_dot-11", T1),
        ("t", None),
        ("t-", None),
        ("t-x", None),
        ("-5", None),
        (f"t-0.{'a' * 32}-delete", None),
        (f"t-0.{'0' * 32}-future", None),
        (f"t-0.{'0' * 32}-stray", None),
    ],
)
def test_names_of_partition_directories(name, partition):
    assert parse_name(name) == partition


def test_a_clean_stop_is_remembered_once(start, options, batch, disk):
    first = start()
    assert not first.clean
    log = first.open_log(T0, options(), NOW, topic_id=TOPIC_ID)
    assert first.open_log(T0, options(), NOW) is log
    log.append_as_leader(batch(3), 1, NOW)
    log.set_high_watermark(2)
    first.close(NOW, broker_epoch=42)
    marker = json.loads(disk.read(f"{first.path}/.kafka_cleanshutdown"))
    assert marker == {"version": 0, "brokerEpoch": 42}
    second = start()
    assert second.clean
    assert not disk.exists(f"{first.path}/.kafka_cleanshutdown")
    found = second.logs[T0]
    assert (found.log_end_offset, found.recovery_point, found.topic_id) == (3, 3, TOPIC_ID)
    assert second.high_watermarks == {T0: 2}
    second.abandon()
    assert not start().clean


def test_a_start_that_is_given_up_before_it_loads_costs_no_recovery(start, pool):
    first = start()
    first.close(NOW)
    given_up = LogDirectory(pool, first.path)
    assert given_up.clean
    given_up.abandon()
    assert start().clean


def test_after_a_crash_recovery_starts_at_the_checkpoint(start, options, batch, disk):
    directory = start()
    log = directory.open_log(T0, options(segment_bytes=300), NOW)
    for _ in range(10):
        log.append_as_leader(batch(), 1, NOW)
    log.flush(NOW)
    directory.write_recovery_points()
    log.append_as_leader(batch(), 1, NOW)
    directory.abandon()
    path = f"{directory.path}/recovery-point-offset-checkpoint"
    assert disk.read(path) == b"0\n1\nt 0 10\n"
    again = start(segment_bytes=300)
    assert again.logs[T0].log_end_offset == 11
    assert again.logs[T0].recovery_point == 10


def test_a_damaged_checkpoint_means_recover_everything(start, options, batch, disk):
    directory = start()
    directory.open_log(T0, options(), NOW).append_as_leader(batch(2), 1, NOW)
    directory.close(NOW)
    disk.write(f"{directory.path}/recovery-point-offset-checkpoint", b"0\n5\n")
    disk.unlink(f"{directory.path}/.kafka_cleanshutdown")
    log = start().logs[T0]
    assert (log.log_end_offset, log.recovery_point) == (2, 0)


def test_log_starts_inside_a_segment_are_remembered(start, options, batch, disk):
    directory = start()
    for partition in (T0, T1):
        directory.open_log(partition, options(), NOW).append_as_leader(batch(5), 1, NOW)
    log = directory.logs[T1]
    log.set_high_watermark(5)
    log.delete_records_before(3)
    directory.close(NOW)
    path = f"{directory.path}/log-start-offset-checkpoint"
    assert disk.read(path) == b"0\n1\nwith-dash.and_dot 11 3\n"
    again = start()
    assert again.logs[T1].log_start_offset == 3
    assert again.logs[T0].log_start_offset == 0


def test_two_brokers_cannot_share_a_disk(start, pool, tmp_path):
    directory = start()
    with pytest.raises(StorageError, match="another broker"):
        LogDirectory(pool, f"{tmp_path}/data")
    directory.close(NOW)
    start()


def test_identity_is_kept_in_meta_properties(start, disk):
    directory = start()
    assert directory.read_meta() is None
    directory.write_meta(7, "cluster-id_22")
    lines = disk.read(f"{directory.path}/meta.properties").decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "version=0",
        "broker.id=7",
        "cluster.id=cluster-id_22",
    ]
    assert directory.read_meta()["broker.id"] == "7"
    disk.write(f"{directory.path}/meta.properties", b"\xff\xfe")
    with pytest.raises(CorruptFileError):
        directory.read_meta()


def test_a_deleted_log_is_renamed_at_once_and_removed_later(start, options, batch, disk):
    directory = start()
    log = directory.open_log(T0, options(), NOW)
    log.append_as_leader(batch(2), 1, NOW)
    piece = log.read(0, 1000)
    path = directory.delete_log(T0, "ab" * 16)
    assert path == f"{directory.path}/t-0.{'ab' * 16}-delete"
    assert T0 not in directory.logs
    assert len(piece.read()) == piece.size > 0
    piece.release()
    fresh = directory.open_log(T0, options(), NOW)
    assert fresh.log_end_offset == 0
    directory.abandon()
    again = start()
    assert list(again.logs) == [T0]
    assert again.leftovers() == [path]
    again.purge(path)
    assert again.leftovers() == []
    with pytest.raises(StorageError):
        again.purge(f"{directory.path}/t-0")
    assert disk.exists(f"{directory.path}/t-0")


def test_a_long_topic_name_is_cut_to_fit(start, options, disk):
    directory = start()
    partition = TopicPartition("n" * 249, 0)
    directory.open_log(partition, options(), NOW)
    path = directory.delete_log(partition, "0" * 32)
    assert len(path.rpartition("/")[2]) == 255
    assert disk.is_dir(path)


def test_foreign_directories_are_left_alone(start, disk):
    directory = start()
    disk.make_dirs(f"{directory.path}/lost+found")
    disk.make_dirs(f"{directory.path}/notes")
    directory.abandon()
    assert start().logs == {}
    assert disk.exists(f"{directory.path}/notes")


def test_many_partitions_need_few_descriptors(disk, tmp_path, options, batch):
    pool = FilePool(disk, limit=10)
    directory = LogDirectory(pool, f"{tmp_path}/data")
    shared = options()
    partitions = [TopicPartition("many", number) for number in range(300)]
    for partition in partitions:
        directory.open_log(partition, shared, NOW, topic_id=TOPIC_ID)
    assert pool.open_count == 0
    for _ in range(2):
        for partition in partitions:
            directory.logs[partition].append_as_leader(batch(), 1, NOW)
            assert pool.open_count <= 10
    for partition in partitions:
        piece = directory.logs[partition].read(1, 1000)
        assert piece.size > 0
        piece.release()
    directory.abandon()
    assert pool.open_count == 0
    again = LogDirectory(pool, f"{tmp_path}/data")
    with ThreadPoolExecutor(4) as executor:
        again.load(lambda topic: shared, NOW, each=executor.map)
    assert pool.open_count == 0
    assert {log.log_end_offset for log in again.logs.values()} == {2}
    assert list(again.logs) == sorted(partitions, key=str)
    again.abandon()


def test_a_directory_can_be_closed_by_several_threads(start, options, batch):
    directory = start()
    for number in range(30):
        log = directory.open_log(TopicPartition("t", number), options(), NOW)
        log.append_as_leader(batch(number + 1), 1, NOW)
    with ThreadPoolExecutor(4) as executor:
        directory.close(NOW, each=executor.map)
    again = start()
    assert again.clean
    ends = {p.partition: log.log_end_offset for p, log in again.logs.items()}
    assert ends == {number: number + 1 for number in range(30)}
    assert {log.recovery_point == log.log_end_offset for log in again.logs.values()} == {True}


def test_a_failed_close_is_no_clean_stop(start, options, batch, disk):
    directory = start()
    directory.open_log(T0, options(), NOW).append_as_leader(batch(2), 1, NOW)
    disk.flush_fails = True
    with pytest.raises(StorageError):
        directory.close(NOW)
    disk.flush_fails = False
    directory.abandon()
    again = start()
    assert not again.clean
    assert again.logs[T0].log_end_offset == 2

"""State rebuilt from the log is the state that wrote it."""

from barnabas.log.producer_state import ProducerStates
from barnabas.log.replay import marker_of, rebuild_producers, replay_producers
from barnabas.records.batch import read_header
from barnabas.records.control import ControlType, build_control_batch

NOW = 1_700_000_000_000


def marker(kind):
    return build_control_batch(
        kind, producer_id=7, producer_epoch=0, coordinator_epoch=5, now_ms=NOW
    )


def test_a_marker_is_read_from_its_batch(batch):
    data = marker(ControlType.ABORT)
    found = marker_of(data, 0, read_header(data))
    assert (found.type, found.coordinator_epoch) == (ControlType.ABORT, 5)
    shifted = bytes(10) + data
    assert marker_of(shifted, 10, read_header(data)) == found
    plain = batch(1)
    assert marker_of(plain, 0, read_header(plain)) is None


def fill(log, batch):
    for sequence in range(12):
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        log.append_as_leader(batch(**identity, transactional=sequence > 5), 0, NOW + sequence)
        if sequence == 8:
            log.append_as_leader(bytearray(marker(ControlType.ABORT)), 0, NOW, origin="coordinator")


def describe(states):
    return [
        (e.producer_id, e.epoch, e.last_sequence, e.coordinator_epoch, e.transaction_first_offset)
        for e in states
    ]


def test_a_full_replay_gives_the_same_state(open_log, batch):
    log = open_log(segment_bytes=300)
    fill(log, batch)
    states = ProducerStates()
    assert replay_producers(states, log.segments, 0, log.log_end_offset) == 13
    assert describe(states) == describe(log.producers)
    assert list(states.get(7).batches) == list(log.producers.get(7).batches)


def test_replay_from_a_snapshot_reads_only_what_follows(open_log, batch, disk):
    log = open_log(segment_bytes=300)
    fill(log, batch)
    states = ProducerStates()
    count = rebuild_producers(disk, log.directory, states, log.segments, log.log_end_offset)
    assert count == log.log_end_offset - log.segments[-1].base_offset
    assert describe(states) == describe(log.producers)
    middle = log.segments[2].base_offset
    assert rebuild_producers(disk, log.directory, states, log.segments, middle) == 0
    assert states.get(7).batches[-1].last_offset == middle - 1

"""Producer snapshots are byte for byte Kafka's, and no damaged one is believed."""

import pytest

from barnabas.log.files import DiskFiles
from barnabas.log.producer_snapshot import (
    decode,
    encode,
    restore_snapshot,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)
from barnabas.log.producer_state import ProducerEntry, ProducerStates, SentBatch
from barnabas.model.errors import CorruptFileError

GOLDEN = bytes.fromhex(
    "00 01 34 68 3c f7 00 00 00 01 00 00 00 00 00 00"
    "0f a0 00 00 00 00 00 01 00 00 00 00 00 00 00 65"
    "00 00 00 01 00 00 01 8b cf e5 68 05 ff ff ff ff"
    "00 00 00 00 00 00 00 64"
)


def golden_entry():
    entry = ProducerEntry(4000, 0)
    entry.batches.append(SentBatch(0, 1, 101, 1, 1_700_000_000_005))
    entry.last_timestamp = 1_700_000_000_005
    entry.transaction_first_offset = 100
    return entry


def test_golden_bytes():
    assert encode([golden_entry()]) == GOLDEN
    (entry,) = decode(GOLDEN)
    assert (entry.producer_id, entry.epoch, entry.last_sequence) == (4000, 0, 1)
    assert list(entry.batches) == [SentBatch(0, 1, 101, 1, 1_700_000_000_005)]
    assert entry.transaction_first_offset == 100
    assert entry.coordinator_epoch == -1


def test_only_the_newest_batch_survives():
    entry = ProducerEntry(1, 2)
    entry.batches.extend(SentBatch(i, i, 10 + i, 0, 5) for i in range(4))
    (again,) = decode(encode([entry]))
    assert [b.first_sequence for b in again.batches] == [3]


def test_an_entry_with_markers_only_and_a_wrapped_sequence_survive():
    marked = ProducerEntry(1, 2)
    marked.coordinator_epoch = 9
    wrapped = ProducerEntry(2, 0)
    wrapped.batches.append(SentBatch(2**31 - 2, 1, 50, 3, 7))
    first, second = decode(encode([marked, wrapped]))
    assert (first.last_sequence, first.coordinator_epoch, len(first.batches)) == (-1, 9, 0)
    assert second.batches[0].first_sequence == 2**31 - 2


@pytest.mark.parametrize("position", range(len(GOLDEN)))
def test_no_flipped_byte_is_believed(position):
    damaged = bytearray(GOLDEN)
    damaged[position] ^= 0x40
    with pytest.raises(CorruptFileError):
        decode(bytes(damaged))


@pytest.mark.parametrize("size", range(len(GOLDEN)))
def test_no_cut_file_is_believed(size):
    with pytest.raises(CorruptFileError):
        decode(GOLDEN[:size])


def test_restore_takes_the_newest_usable_one_at_or_below(tmp_path):
    files, directory = DiskFiles(), str(tmp_path)
    states = ProducerStates()
    states.restore([golden_entry()])
    for offset in (0, 100, 200, 300):
        write_snapshot(files, directory, states, offset)
    files.write(snapshot_path(directory, 200), b"damaged")
    files.write(f"{directory}/partition.metadata", b"")
    assert snapshot_offsets(files, directory) == [0, 100, 200, 300]
    restored = ProducerStates()
    assert restore_snapshot(files, directory, restored, [0, 100, 200, 300], 250) == 100
    assert restored.first_unstable_offset == 100
    assert snapshot_offsets(files, directory) == [0, 100, 300]
    assert restore_snapshot(files, directory, restored, [100, 300], 50) is None

"""The map of newest offsets: bounded, and right for every key it was given."""

from random import Random

import pytest

from barnabas.kernels import SLOT_SIZE
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.records.builder import build_batch


def records_of(rows):
    return build_batch([(0, key, b"") for key in rows])[61:]


def test_it_behaves_like_a_dictionary():
    random = Random(5)
    known = {}
    offsets = OffsetMap(SLOT_SIZE * 800, 0.9, 10**9)
    for base in range(0, 3000, 10):
        rows = [random.randbytes(random.choice((0, 1, 8, 64, 200)))[:8] for _ in range(10)]
        rows = [row if len(row) < 2 else b"k%d" % random.randrange(400) for row in rows]
        assert offsets.put_records(records_of(rows), 10, base, 0) == -1
        known.update({key: base + index for index, key in enumerate(rows)})
        assert len(offsets) == len(known)
    assert {key: offsets.get(key) for key in known} == known
    assert offsets.get(b"another") is None


def test_it_stops_at_the_load_factor_and_known_keys_still_move():
    offsets = OffsetMap(SLOT_SIZE * 10, 0.5, 10**9)
    assert offsets.capacity == 5
    rows = [b"k%d" % number for number in range(8)]
    assert offsets.put_records(records_of(rows), 8, 100, 0) == 105
    assert len(offsets) == 5
    assert offsets.put_records(records_of(rows[:5]), 5, 200, 0) == -1
    assert offsets.get(b"k4") == 204
    assert offsets.get(b"k5") is None


@pytest.mark.parametrize("load_factor", [0.0, 0.1, 0.9, 1.0, 7.5])
@pytest.mark.parametrize("slots", [0, 1, 2, 50])
@pytest.mark.parametrize("keys", [0, 1, 3, 60])
def test_a_search_always_ends(load_factor, slots, keys):
    """One slot stays free, whatever the options say."""
    offsets = OffsetMap(SLOT_SIZE * slots, load_factor, keys)
    if offsets.slots:
        rows = [b"k%d" % number for number in range(70)]
        offsets.put_records(records_of(rows), 70, 0, 0)
    assert len(offsets) <= offsets.capacity < max(len(offsets.slots) // SLOT_SIZE, 1)
    assert offsets.get(b"unknown") is None


def test_it_takes_no_more_memory_than_its_keys_need():
    assert len(OffsetMap(1 << 27, 0.9, 100).slots) <= 120 * SLOT_SIZE


def test_records_below_the_start_are_passed_over():
    offsets = OffsetMap(SLOT_SIZE * 10, 0.9, 10)
    batch = build_batch([(0, b"a", b""), (0, b"b", b"")], base_offset=5)
    assert offsets.put_batches(batch, 0, len(batch), 6) == (len(batch), -1)
    assert (offsets.get(b"a"), offsets.get(b"b")) == (None, 6)


def test_its_memory_can_be_given_back():
    offsets = OffsetMap(SLOT_SIZE * 10, 0.9, 10)
    assert offsets.put_records(records_of([b"a"]), 1, 0, 0) == -1
    offsets.release()
    with pytest.raises(ValueError, match="released"):
        offsets.get(b"a")


def test_a_map_without_a_slot_takes_nothing():
    offsets = OffsetMap(SLOT_SIZE - 1, 0.9, 10)
    assert offsets.put_records(records_of([None, b"a"]), 2, 40, 0) == 41
    assert offsets.get(b"a") is None

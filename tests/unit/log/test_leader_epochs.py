"""Leader epochs: what may follow what, and which offset ends an epoch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.model.errors import CorruptFileError


def epochs(*pairs):
    cache = LeaderEpochs()
    for epoch, start in pairs:
        cache.assign(epoch, start)
    return cache


@pytest.mark.parametrize(
    ("assigned", "kept"),
    [
        ([(1, 0), (2, 10)], [(1, 0), (2, 10)]),
        ([(1, 0), (1, 5)], [(1, 0)]),
        ([(1, 5), (1, 3)], [(1, 3)]),
        ([(1, 0), (3, 10), (2, 20)], [(1, 0), (2, 20)]),
        ([(1, 0), (2, 10), (3, 10)], [(1, 0), (3, 10)]),
        ([(1, 0), (2, 10), (3, 5)], [(1, 0), (3, 5)]),
        ([(-1, 0)], []),
    ],
)
def test_assignments_that_contradict_replace(assigned, kept):
    cache = epochs(*assigned)
    assert list(cache) == kept
    assert cache.latest == (kept[-1][0] if kept else -1)


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (0, (0, 5)),
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 30)),
        (7, (7, 99)),
        (8, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_end_offset_of_an_epoch(epoch, answer):
    cache = epochs((2, 5), (4, 20), (7, 30))
    assert cache.end_offset_of(epoch, 99) == answer


def test_without_epochs_nothing_is_known():
    assert LeaderEpochs().end_offset_of(0, 10) == (-1, -1)
    assert LeaderEpochs().epoch_of(0) == -1


def test_epoch_of_an_offset():
    cache = epochs((2, 5), (4, 20))
    assert [cache.epoch_of(o) for o in (4, 5, 19, 20, 100)] == [-1, 2, 2, 4, 4]


def test_cutting_the_end_and_the_start():
    cache = epochs((1, 0), (2, 10), (3, 20))
    cache.truncate_end(20)
    assert list(cache) == [(1, 0), (2, 10)]
    cache.truncate_start(12)
    assert list(cache) == [(2, 12)]
    cache.truncate_start(3)
    assert list(cache) == [(2, 12)]
    cache.clear()
    assert (list(cache), cache.latest) == ([], -1)


def test_a_start_where_an_epoch_begins_forgets_those_before_it():
    cache = epochs((1, 0), (2, 10), (3, 20))
    cache.truncate_start(10)
    assert list(cache) == [(2, 10), (3, 20)]
    cache.changed = False
    cache.truncate_start(10)
    assert not cache.changed


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 50)), max_size=20))
def test_both_columns_always_ascend_and_the_file_reads_back(pairs):
    cache = epochs(*pairs)
    kept = list(cache)
    assert kept == sorted(set(kept))
    assert len({e for e, _ in kept}) == len({s for _, s in kept}) == len(kept)
    if pairs:
        assert kept[-1][0] == pairs[-1][0]
    assert list(LeaderEpochs.decode(cache.encode(), "f")) == kept


def test_the_file_is_kafkas_and_damage_is_refused():
    assert epochs((1, 0), (2, 10)).encode() == b"0\n2\n1 0\n2 10\n"
    with pytest.raises(CorruptFileError):
        LeaderEpochs.decode(b"0\n1\n1 0 5\n", "f")

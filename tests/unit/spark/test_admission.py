"""How much goes into a batch: exactly the limit, in proportion; and how long to wait for enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.ids import TopicPartition
from barnabas.spark.admission import Patience, share

PLACES = [TopicPartition("t", number) for number in range(6)]


@given(st.dictionaries(st.sampled_from(PLACES), st.integers(0, 10_000)), st.integers(1, 20_000))
def test_shares_are_the_limit_or_all_there_is(
    backlog: dict[TopicPartition, int], limit: int
) -> None:
    shares = share(backlog, limit)
    assert sum(shares.values()) == min(limit, sum(backlog.values()))
    assert all(0 <= count <= backlog[place] for place, count in shares.items())


def test_shares_are_in_proportion() -> None:
    backlog = {PLACES[0]: 900, PLACES[1]: 100, PLACES[2]: 0}
    assert share(backlog, 100) == {PLACES[0]: 90, PLACES[1]: 10}
    assert share(backlog, 5000) == {PLACES[0]: 900, PLACES[1]: 100}


def test_a_single_offset_goes_to_the_partition_with_most() -> None:
    assert share({PLACES[0]: 3, PLACES[1]: 7}, 1) == {PLACES[0]: 0, PLACES[1]: 1}


def test_patience_waits_for_enough_and_no_longer_than_its_delay() -> None:
    patience = Patience(100, 1000)
    assert patience.is_enough(1, now_ms=0)  # the first batch waits for nothing
    assert not patience.is_enough(99, now_ms=999)
    assert patience.is_enough(100, now_ms=999)
    assert not patience.is_enough(5, now_ms=1998)
    assert patience.is_enough(5, now_ms=1999)


def test_without_a_least_number_everything_is_enough() -> None:
    patience = Patience(None, 1000)
    assert all(patience.is_enough(count, now_ms) for count, now_ms in [(1, 0), (0, 1), (1, 2)])

"""How much goes into a batch: exactly the limit, in proportion; and how long to wait for enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.ids import TopicPartition
from barnabas.spark.rate_limit import TriggerDelay, limit_rate

PARTITIONS = [TopicPartition("t", number) for number in range(6)]


@given(st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 10_000)), st.integers(1, 20_000))
def test_shares_are_the_limit_or_all_there_is(
    backlog: dict[TopicPartition, int], limit: int
) -> None:
    shares = limit_rate(backlog, limit)
    assert sum(shares.values()) == min(limit, sum(backlog.values()))
    assert all(0 <= count <= backlog[partition] for partition, count in shares.items())


def test_shares_are_in_proportion() -> None:
    backlog = {PARTITIONS[0]: 900, PARTITIONS[1]: 100, PARTITIONS[2]: 0}
    assert limit_rate(backlog, 100) == {PARTITIONS[0]: 90, PARTITIONS[1]: 10}
    assert limit_rate(backlog, 5000) == {PARTITIONS[0]: 900, PARTITIONS[1]: 100}


def test_a_single_offset_goes_to_the_partition_with_most() -> None:
    assert limit_rate({PARTITIONS[0]: 3, PARTITIONS[1]: 7}, 1) == {
        PARTITIONS[0]: 0,
        PARTITIONS[1]: 1,
    }


def test_patience_waits_for_enough_and_no_longer_than_its_delay() -> None:
    delay = TriggerDelay(100, 1000)
    assert delay.is_due(1, now_ms=0)  # the first batch waits for nothing
    assert not delay.is_due(99, now_ms=999)
    assert delay.is_due(100, now_ms=999)
    assert not delay.is_due(5, now_ms=1998)
    assert delay.is_due(5, now_ms=1999)


def test_without_a_least_number_everything_is_enough() -> None:
    delay = TriggerDelay(None, 1000)
    assert all(delay.is_due(count, now_ms) for count, now_ms in [(1, 0), (0, 1), (1, 2)])

"""Tasks are planned from offsets alone: every offset once, evenly, the same each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.offset_ranges import OffsetRange, plan_tasks
from barnabas.spark.range_reader import one_per_partition

ranges_strategy = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5)),
    st.tuples(st.integers(0, 1000), st.integers(0, 500)),
    max_size=8,
).map(
    lambda found: [
        OffsetRange(topic, partition, start, start + count)
        for (topic, partition), (start, count) in found.items()
    ]
)


def offsets_of(ranges: list[OffsetRange]) -> list[tuple[str, int, int]]:
    return [
        (each.topic, each.partition, offset)
        for each in ranges
        for offset in range(each.start, each.until)
    ]


@given(ranges_strategy, st.integers(1, 10), st.none() | st.integers(1, 300))
def test_every_offset_is_read_once(
    ranges: list[OffsetRange], tasks: int, records_max: int | None
) -> None:
    planned = plan_tasks(ranges, tasks, records_max)
    read = [offset for task in planned for offset in offsets_of(list(task))]
    assert sorted(read) == sorted(offsets_of(ranges))
    assert all(planned)
    if records_max is not None:
        assert all(sum(map(len, task)) <= records_max for task in planned)


@given(ranges_strategy, st.integers(1, 10), st.randoms())
def test_the_order_of_ranges_makes_no_difference(
    ranges: list[OffsetRange], tasks: int, random
) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(ranges)
    random.shuffle(shuffled)
    assert plan_tasks(shuffled, tasks) == plan_tasks(ranges, tasks)


def test_many_partitions_become_as_many_tasks_as_asked_for() -> None:
    planned = plan_tasks([OffsetRange("t", number, 0, 100) for number in range(12)], 4)
    assert [sum(map(len, task)) for task in planned] == [300] * 4


def test_a_large_partition_is_cut_when_more_tasks_are_asked_for() -> None:
    planned = plan_tasks([OffsetRange("t", 0, 0, 900), OffsetRange("t", 1, 0, 100)], 4)
    assert [sum(map(len, task)) for task in planned] == [325, 225, 225, 225]
    assert planned[0] == (OffsetRange("t", 0, 0, 225), OffsetRange("t", 1, 0, 100))


def test_nothing_to_read_needs_no_task() -> None:
    assert plan_tasks([OffsetRange("t", 0, 5, 5)], 3) == []
    assert plan_tasks([], 3) == []


def test_pieces_of_one_partition_are_read_one_after_the_other() -> None:
    one, two, other = (
        OffsetRange("t", 0, 0, 5),
        OffsetRange("t", 0, 9, 12),
        OffsetRange("t", 1, 0, 5),
    )
    assert one_per_partition([one, two, other]) == [[one, other], [two]]
    assert one_per_partition([]) == []

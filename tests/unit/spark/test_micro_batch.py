"""Where a stream goes next, and what it says when records are gone."""

from __future__ import annotations

import pickle

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import CheckpointError, DataLossError
from barnabas.spark.micro_batch import MicroBatchPlanner, TopicSnapshot
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.source_offset import SourceOffset, ranges_between
from barnabas.spark.topic_selection import SelectedTopic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**given: str) -> SourceOptions:
    given = {"subscribe": "t", **given}
    return parse_source({"kafka.bootstrap.servers": "b:1", **given}, streaming=True)


def view(*ends: tuple[int, int], topic: str = "t", topic_id: str = "one") -> TopicSnapshot:
    partitions = [TopicPartition(topic, number) for number in range(len(ends))]
    return TopicSnapshot(
        {topic: SelectedTopic(topic_id, tuple(range(len(ends))))},
        {partition: first for partition, (first, _) in zip(partitions, ends, strict=True)},
        {partition: last for partition, (_, last) in zip(partitions, ends, strict=True)},
    )


def at(*offsets: int, topic_id: str = "one") -> SourceOffset:
    partitions = [TopicPartition("t", number) for number in range(len(offsets))]
    return SourceOffset(dict(zip(partitions, offsets, strict=True)), {"t": topic_id}, 1)


def test_the_first_batch_keeps_where_it_began() -> None:
    planner = MicroBatchPlanner(options())
    now = view((3, 10))
    end = planner.next_end(planner.first_start(now, {T0: 3}), now, None, 0, first=True)
    assert end is not None
    assert (end.offsets, end.begun) == ({T0: 10}, {T0: 3})


def test_nothing_new_is_no_batch() -> None:
    assert MicroBatchPlanner(options()).next_end(at(10), view((0, 10)), None, 0) is None


def test_a_topic_that_is_no_longer_chosen_is_not_called_gone() -> None:
    other = TopicPartition("other", 0)
    start = SourceOffset({T0: 5, other: 7}, {"t": "one", "other": "two"}, 1)
    with pytest.raises(
        DataLossError, match=r"lost: offsets from 7 on of other-0 \(subscribe=t does not name it\)"
    ):
        MicroBatchPlanner(options()).next_end(start, view((0, 20)), None, 0)
    end = MicroBatchPlanner(options(failOnDataLoss="false")).next_end(start, view((0, 20)), None, 0)
    assert end is not None
    assert end.offsets == {T0: 20}


def test_a_limit_is_shared_and_the_rest_comes_next() -> None:
    planner, now = MicroBatchPlanner(options()), view((0, 90), (0, 10))
    first = planner.next_end(at(0, 0), now, 50, 0)
    assert first is not None
    assert first.offsets == {T0: 45, T1: 5}
    second = planner.next_end(first, now, 50, 1)
    assert second is not None
    assert second.offsets == {T0: 90, T1: 10}
    assert planner.next_end(second, now, 50, 2) is None


def test_available_now_stops_at_the_ends_of_then() -> None:
    planner = MicroBatchPlanner(options(minOffsetsPerTrigger="1000"))
    planner.stop_at(view((0, 10)))
    end = planner.next_end(at(0), view((0, 99), (0, 5)), None, 0)
    assert end is not None
    assert end.offsets == {T0: 10, T1: 0}
    assert planner.next_end(end, view((0, 99), (0, 5)), None, 1) is None


def test_too_little_waits() -> None:
    planner = MicroBatchPlanner(options(minOffsetsPerTrigger="10", maxTriggerDelay="1s"))
    start = planner.next_end(at(0), view((0, 1)), None, 0)
    assert start is not None
    assert planner.next_end(start, view((0, 10)), None, 10) is None
    due = planner.next_end(start, view((0, 10)), None, 1000)
    assert due is not None
    assert due.offsets == {T0: 10}


def test_a_new_partition_is_read_from_its_beginning() -> None:
    end = MicroBatchPlanner(options()).next_end(at(10), view((0, 10), (2, 6)), None, 0)
    assert end is not None
    assert [each for each in ranges_between(at(10), end) if len(each)] == [
        ranges_between(at(10), end)[1]
    ]
    assert (end.offsets[T1], end.begun) == (6, {T1: 2})


@pytest.mark.parametrize(
    ("start", "now", "message"),
    [
        (at(5), view((8, 20)), r"offsets 5 to 7 of t-0 \(the log starts at 8\)"),
        (at(50), view((0, 20)), r"offsets 20 to 49 of t-0 \(the log ends at 20\)"),
        (at(5, topic_id="old"), view((0, 20)), "offsets from 5 on of t-0 .* its id was old"),
        (at(5, 7), view((0, 20)), r"offsets from 7 on of t-1 \(the partition no longer exists\)"),
        (
            at(5),
            TopicSnapshot({}, {}, {}),
            r"offsets from 5 on of t-0 \(the topic no longer exists\)",
        ),
    ],
)
def test_what_is_lost_is_told_exactly(
    start: SourceOffset, now: TopicSnapshot, message: str
) -> None:
    with pytest.raises(DataLossError, match=message) as failure:
        MicroBatchPlanner(options()).next_end(start, now, None, 0)
    assert str(pickle.loads(pickle.dumps(failure.value))) == str(failure.value)


@pytest.mark.parametrize(
    ("start", "now", "begun", "end"),
    [
        (at(5), view((8, 20)), {T0: 8}, {T0: 20}),
        (at(50), view((0, 20)), {T0: 20}, {T0: 20}),
        (at(5, topic_id="old"), view((1, 20)), {T0: 1}, {T0: 20}),
        (at(5, 7), view((0, 20)), {}, {T0: 20}),
        (at(5), TopicSnapshot({}, {}, {}), {}, {}),
    ],
)
def test_a_stream_that_may_lose_goes_on(
    start: SourceOffset,
    now: TopicSnapshot,
    begun: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
) -> None:
    reached = MicroBatchPlanner(options(failOnDataLoss="false")).next_end(start, now, None, 0)
    assert reached is not None
    assert (reached.begun, reached.offsets) == (begun, end)


def test_a_checkpoint_of_another_topic_is_refused() -> None:
    with pytest.raises(CheckpointError, match="checkpoint is for topic t, the query reads subscr"):
        MicroBatchPlanner(options(subscribe="u")).next_end(at(5), view((0, 9), topic="u"), None, 0)


def test_a_start_outside_of_the_log_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"startingOffsets: missing offsets 1 to 2"):
        MicroBatchPlanner(options()).first_start(view((3, 9)), {T0: 1})
    clamped = MicroBatchPlanner(options(failOnDataLoss="false")).first_start(view((3, 9)), {T0: 1})
    assert clamped.offsets == {T0: 3}


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="subscribe=t: topic t does not exist"):
        MicroBatchPlanner(options()).first_start(TopicSnapshot({}, {}, {}), {})


def test_a_replay_does_not_read_another_topic_of_the_same_name() -> None:
    end = at(9)
    ranges = ranges_between(at(5), end)
    planner, lenient = (
        MicroBatchPlanner(options()),
        MicroBatchPlanner(options(failOnDataLoss="false")),
    )
    assert planner.drop_replaced_topics(ranges, end, view((0, 20))) == ranges
    for now, why in [
        (view((0, 20), topic_id="two"), "recreated"),
        (TopicSnapshot({}, {}, {}), "no longer exists"),
    ]:
        with pytest.raises(DataLossError, match=f"offsets 5 to 8 of t-0 .*{why}"):
            planner.drop_replaced_topics(ranges, end, now)
        assert lenient.drop_replaced_topics(ranges, end, now) == []


def test_few_records_are_read_by_few_tasks_unless_options_say_else() -> None:
    def tasks(records: int, **given: str) -> int:
        end = MicroBatchPlanner(options(**given)).next_end(
            at(0, 0), view((0, records), (0, 0)), None, 0
        )
        assert end is not None
        return end.tasks

    most = options().tasks(2)
    assert (tasks(1), tasks(1000), tasks(1_000_000)) == (1, 1, most)
    assert tasks(1001) == min(2, most)
    assert tasks(1, minPartitions="5") == 5

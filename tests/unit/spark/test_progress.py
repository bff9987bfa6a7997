"""Where a stream goes next, and what it says when records are gone."""

from __future__ import annotations

import pickle

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.choice import TopicNow
from barnabas.spark.errors import CheckpointError, DataLossError
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.positions import Positions, ranges_between
from barnabas.spark.progress import Progress, View

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**given: str) -> SourceOptions:
    given = {"subscribe": "t", **given}
    return parse_source({"kafka.bootstrap.servers": "b:1", **given}, streaming=True)


def view(*ends: tuple[int, int], topic: str = "t", topic_id: str = "one") -> View:
    places = [TopicPartition(topic, number) for number in range(len(ends))]
    return View(
        {topic: TopicNow(topic_id, tuple(range(len(ends))))},
        {place: first for place, (first, _) in zip(places, ends, strict=True)},
        {place: last for place, (_, last) in zip(places, ends, strict=True)},
    )


def at(*offsets: int, topic_id: str = "one") -> Positions:
    places = [TopicPartition("t", number) for number in range(len(offsets))]
    return Positions(dict(zip(places, offsets, strict=True)), {"t": topic_id}, 1)


def test_the_first_batch_keeps_where_it_began() -> None:
    progress = Progress(options())
    now = view((3, 10))
    end = progress.advance(progress.begin(now, {T0: 3}), now, None, 0, first=True)
    assert end is not None
    assert (end.offsets, end.begun) == ({T0: 10}, {T0: 3})


def test_nothing_new_is_no_batch() -> None:
    assert Progress(options()).advance(at(10), view((0, 10)), None, 0) is None


def test_a_topic_that_is_no_longer_chosen_is_not_called_gone() -> None:
    other = TopicPartition("other", 0)
    start = Positions({T0: 5, other: 7}, {"t": "one", "other": "two"}, 1)
    with pytest.raises(
        DataLossError, match=r"lost: offsets from 7 on of other-0 \(subscribe=t does not name it\)"
    ):
        Progress(options()).advance(start, view((0, 20)), None, 0)
    end = Progress(options(failOnDataLoss="false")).advance(start, view((0, 20)), None, 0)
    assert end is not None
    assert end.offsets == {T0: 20}


def test_a_limit_is_shared_and_the_rest_comes_next() -> None:
    progress, now = Progress(options()), view((0, 90), (0, 10))
    first = progress.advance(at(0, 0), now, 50, 0)
    assert first is not None
    assert first.offsets == {T0: 45, T1: 5}
    second = progress.advance(first, now, 50, 1)
    assert second is not None
    assert second.offsets == {T0: 90, T1: 10}
    assert progress.advance(second, now, 50, 2) is None


def test_available_now_stops_at_the_ends_of_then() -> None:
    progress = Progress(options(minOffsetsPerTrigger="1000"))
    progress.stop_at(view((0, 10)))
    end = progress.advance(at(0), view((0, 99), (0, 5)), None, 0)
    assert end is not None
    assert end.offsets == {T0: 10, T1: 0}
    assert progress.advance(end, view((0, 99), (0, 5)), None, 1) is None


def test_too_little_waits() -> None:
    progress = Progress(options(minOffsetsPerTrigger="10", maxTriggerDelay="1s"))
    start = progress.advance(at(0), view((0, 1)), None, 0)
    assert start is not None
    assert progress.advance(start, view((0, 10)), None, 10) is None
    due = progress.advance(start, view((0, 10)), None, 1000)
    assert due is not None
    assert due.offsets == {T0: 10}


def test_a_new_partition_is_read_from_its_beginning() -> None:
    end = Progress(options()).advance(at(10), view((0, 10), (2, 6)), None, 0)
    assert end is not None
    assert [each for each in ranges_between(at(10), end) if len(each)] == [
        ranges_between(at(10), end)[1]
    ]
    assert (end.offsets[T1], end.begun) == (6, {T1: 2})


@pytest.mark.parametrize(
    ("start", "now", "message"),
    [
        (at(5), view((8, 20)), r"offsets 5 to 7 of t-0 \(the log begins at 8\)"),
        (at(50), view((0, 20)), r"offsets 20 to 49 of t-0 \(the log ends at 20\)"),
        (at(5, topic_id="old"), view((0, 20)), "offsets from 5 on of t-0 .* its id was old"),
        (at(5, 7), view((0, 20)), r"offsets from 7 on of t-1 \(the partition is gone\)"),
        (at(5), View({}, {}, {}), r"offsets from 5 on of t-0 \(the topic is gone\)"),
    ],
)
def test_what_is_lost_is_told_exactly(start: Positions, now: View, message: str) -> None:
    with pytest.raises(DataLossError, match=message) as failure:
        Progress(options()).advance(start, now, None, 0)
    assert str(pickle.loads(pickle.dumps(failure.value))) == str(failure.value)


@pytest.mark.parametrize(
    ("start", "now", "begun", "end"),
    [
        (at(5), view((8, 20)), {T0: 8}, {T0: 20}),
        (at(50), view((0, 20)), {T0: 20}, {T0: 20}),
        (at(5, topic_id="old"), view((1, 20)), {T0: 1}, {T0: 20}),
        (at(5, 7), view((0, 20)), {}, {T0: 20}),
        (at(5), View({}, {}, {}), {}, {}),
    ],
)
def test_a_stream_that_may_lose_goes_on(
    start: Positions,
    now: View,
    begun: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
) -> None:
    reached = Progress(options(failOnDataLoss="false")).advance(start, now, None, 0)
    assert reached is not None
    assert (reached.begun, reached.offsets) == (begun, end)


def test_a_checkpoint_of_another_topic_is_refused() -> None:
    with pytest.raises(CheckpointError, match="checkpoint is of topic t, the query reads subscr"):
        Progress(options(subscribe="u")).advance(at(5), view((0, 9), topic="u"), None, 0)


def test_a_start_outside_of_the_log_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"startingOffsets: there are no offsets 1 to 2"):
        Progress(options()).begin(view((3, 9)), {T0: 1})
    clamped = Progress(options(failOnDataLoss="false")).begin(view((3, 9)), {T0: 1})
    assert clamped.offsets == {T0: 3}


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="subscribe=t: topic t does not exist"):
        Progress(options()).begin(View({}, {}, {}), {})


def test_a_replay_does_not_read_another_topic_of_the_same_name() -> None:
    end = at(9)
    ranges = ranges_between(at(5), end)
    progress, lenient = Progress(options()), Progress(options(failOnDataLoss="false"))
    assert progress.still_there(ranges, end, view((0, 20))) == ranges
    for now, why in [(view((0, 20), topic_id="two"), "created again"), (View({}, {}, {}), "gone")]:
        with pytest.raises(DataLossError, match=f"offsets 5 to 8 of t-0 .*{why}"):
            progress.still_there(ranges, end, now)
        assert lenient.still_there(ranges, end, now) == []


def test_few_records_are_read_by_few_tasks_unless_options_say_else() -> None:
    def tasks(records: int, **given: str) -> int:
        end = Progress(options(**given)).advance(at(0, 0), view((0, records), (0, 0)), None, 0)
        assert end is not None
        return end.tasks

    most = options().tasks(2)
    assert (tasks(1), tasks(1000), tasks(1_000_000)) == (1, 1, most)
    assert tasks(1001) == min(2, most)
    assert tasks(1, minPartitions="5") == 5

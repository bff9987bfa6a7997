"""The accumulator: where records go, what is refused, and what their futures say."""

from __future__ import annotations

from array import array
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import kernels
from barnabas.kernels import HEADER_SIZE
from barnabas.model.errors import BarnabasError, InvalidValueError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import Refusal
from barnabas.structs import RecordMetadata

NOW = 1_700_000_000_000


class World:
    """An accumulator and what it calls."""

    def __init__(
        self,
        twin: ModuleType,
        batch_size: int = 1000,
        memory: int = 100_000,
        batch_size_max: int = 0,
        **more: Any,
    ):
        self.twin = twin
        self.woken = 0
        self.waited: list[Any] = []
        self.chosen: list[str] = []
        self.pool = twin.BufferPool(memory, batch_size, batch_size_max)
        self.accumulator = twin.Accumulator(
            self.pool,
            wake=self.wake,
            choose=self.choose,
            wait=lambda batch, timeout: self.waited.append((batch, timeout)),
            clock=lambda: NOW,
            **more,
        )
        self.accumulator.add_topic("t", 4)

    def wake(self) -> None:
        self.woken += 1

    def choose(self, topic: str) -> int:
        self.chosen.append(topic)
        return len(self.chosen)

    def take(self) -> list[Any]:
        """Take all batches away, as the sender does."""
        return [
            batch
            for slot in self.accumulator.collect()
            for batch in self.accumulator.take(slot, True)
        ]

    def read(self, batch: Any) -> list[tuple[Any, ...]]:
        payload = batch.finish()
        header = kernels.check_batch(payload)
        return [
            (r.timestamp, r.key, r.value, r.headers)
            for r in kernels.read_records(
                payload, HEADER_SIZE, len(payload), header.count, 0, header.base_timestamp
            )
        ]


@pytest.fixture
def world(twin: ModuleType) -> World:
    return World(twin)


def test_records_of_a_partition_share_a_batch(world: World) -> None:
    send = world.accumulator.append
    send("t", b"one", partition=2)
    send("t", b"two", b"key", [("h", b"1"), ("n", None)], 2, NOW - 5)
    send("t", bytearray(b"three"), memoryview(b"k"), partition=2)
    [batch] = world.take()
    assert (batch.partition, batch.count) == (TopicPartition("t", 2), 3)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW, NOW)
    assert world.read(batch) == [
        (NOW, None, b"one", ()),
        (NOW - 5, b"key", b"two", (("h", b"1"), ("n", None))),
        (NOW, b"k", b"three", ()),
    ]


def test_keys_go_where_every_client_sends_them(world: World) -> None:
    future = world.accumulator.append("t", b"v", b"foobar")
    expected = (kernels.murmur2(b"foobar") & 0x7FFFFFFF) % 4
    assert future.batch.partition.partition == expected


def test_records_without_a_key_stay_with_a_partition_for_a_batch(world: World) -> None:
    """And the next one is chosen only when a batch's bytes are together (KIP-794)."""
    places = [
        world.accumulator.append("t", b"x" * 100).batch.partition.partition for _ in range(40)
    ]
    changes = sum(1 for one, other in pairwise(places) if one != other)
    assert places[:8] == [1] * 8
    assert changes == 4
    assert world.chosen == ["t"] * (changes + 1)


def test_keys_can_be_ignored(twin: ModuleType) -> None:
    world = World(twin, ignore_keys=True)
    places = {world.accumulator.append("t", b"v", bytes([n])).batch.partition for n in range(9)}
    assert len(places) == 1


def test_a_full_batch_is_closed_and_the_sender_is_woken_once_until_it_looks(world: World) -> None:
    for _ in range(20):
        world.accumulator.append("t", b"x" * 100, partition=0)
    assert world.woken == 1
    batches = world.take()
    assert [batch.count for batch in batches] == [8, 8, 4]
    assert all(batch.size <= 1000 for batch in batches)
    world.accumulator.append("t", b"x", partition=0)
    assert world.woken == 2


def test_a_full_batch_that_nobody_takes_grows_up_to_a_bound(twin: ModuleType) -> None:
    world = World(twin, batch_size_max=3000)
    batches = {world.accumulator.append("t", b"x" * 100, partition=0).batch for _ in range(60)}
    sizes = sorted(batch.size for batch in batches)
    assert len(batches) == 3
    assert 2800 < sizes[-1] <= 3000
    assert max(batches, key=lambda batch: batch.size).full


def test_a_reused_buffer_with_a_living_view_does_not_grow(
    twin: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    """A buffer may be used again while the request of its last batch is still referred to."""
    world = World(twin, batch_size_max=3000)
    world.accumulator.append("t", b"v", partition=0)
    (batch,) = world.take()
    view = batch.view()
    batch.fail(BarnabasError("for its buffer"))
    futures = [world.accumulator.append("t", b"x" * 100, partition=0) for _ in range(20)]
    assert len({future.batch for future in futures}) == 2
    assert len(view) > 0
    assert capfd.readouterr().err == ""


def test_a_record_larger_than_a_batch_goes_alone(world: World) -> None:
    small = world.accumulator.append("t", b"s", partition=0)
    large = world.accumulator.append("t", b"x" * 5000, partition=0)
    after = world.accumulator.append("t", b"s", partition=0)
    assert small.batch is not large.batch
    assert large.batch is not after.batch
    assert [batch.count for batch in world.take()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("unknown", b"v"), Refusal.TOPIC),
        ((5, b"v"), Refusal.TYPE),
        (("t", "text"), Refusal.TYPE),
        (("t", b"v", 7), Refusal.TYPE),
        (("t", b"v", None, {"h": b"1"}), Refusal.TYPE),
        (("t", b"v", None, [("h", "text")]), Refusal.TYPE),
        (("t", b"v", None, [(b"h", b"v")]), Refusal.TYPE),
        (("t", b"v", None, [("h",)]), Refusal.TYPE),
        (("t", b"v", None, None, "1"), Refusal.TYPE),
        (("t", b"v", None, None, 0, 1.5), Refusal.TYPE),
        (("t", b"v", None, None, 4), Refusal.PARTITION),
        (("t", b"v", None, None, -1), Refusal.PARTITION),
        (("t", None, None), Refusal.EMPTY),
        (("t", b"x" * 20_000), Refusal.SIZE),
    ],
)
def test_what_cannot_be_taken_is_refused_and_changes_nothing(
    twin: ModuleType, arguments: tuple[Any, ...], refusal: Refusal
) -> None:
    world = World(twin, record_size_max=10_000)
    assert world.accumulator.append(*arguments) is refusal
    assert world.take() == []


def test_memory_is_bounded_and_comes_back(world: World) -> None:
    accumulator = world.accumulator
    rooms: list[int] = []
    world.pool.on_room = lambda: rooms.append(world.pool.in_use)
    taken = []
    while not isinstance(future := accumulator.append("t", b"x" * 900, partition=0), Refusal):
        taken.append(future)
    assert future is Refusal.MEMORY
    assert len(taken) == 100
    assert world.pool.in_use == 100_000
    for batch in world.take():
        batch.complete(7)
    assert world.pool.in_use == 0
    assert rooms[-1] == 0
    assert not isinstance(accumulator.append("t", b"x", partition=0), Refusal)


def test_memory_is_given_in_turn_while_somebody_waits(twin: ModuleType) -> None:
    """Records that fit in an open batch need none; no batch is begun or grows for anybody else."""
    world = World(twin, batch_size_max=3000)
    accumulator = world.accumulator
    assert not isinstance(accumulator.append("t", b"x" * 100, partition=0), Refusal)
    world.pool.waiting = True
    assert not isinstance(accumulator.append("t", b"x" * 100, partition=0), Refusal)
    assert accumulator.append("t", b"x", partition=1) == Refusal.MEMORY
    assert accumulator.append("t", b"x" * 900, partition=0) == Refusal.MEMORY
    assert accumulator.append_many("t", [b"x" * 900] * 2, 0, [], 1) == (0, Refusal.MEMORY)
    columns = ("t", None, None, column([b"x" * 900] * 2), None, 0, 2)
    assert accumulator.append_columns(*columns, [], 1) == (0, Refusal.MEMORY)
    whole = bytes(200)
    assert accumulator.adopt(TopicPartition("t", 1), whole) == Refusal.MEMORY
    assert world.pool.in_use == 1000
    # In turn, each of them is taken; of many rows the first one alone.
    assert not isinstance(accumulator.append("t", b"x" * 900, partition=0, in_turn=True), Refusal)
    assert accumulator.append_many("t", [b"x" * 900] * 2, 0, [], 1, True) == (1, Refusal.MEMORY)
    assert accumulator.append_columns(*columns, [], 2, True) == (1, Refusal.MEMORY)
    assert not isinstance(accumulator.adopt(TopicPartition("t", 1), whole, True), Refusal)
    world.pool.waiting = False
    assert not isinstance(accumulator.append("t", b"x" * 900, partition=1), Refusal)


def test_a_batch_must_fit_in_the_memory(twin: ModuleType) -> None:
    with pytest.raises(InvalidValueError, match=r"buffer.memory=10 .*batch.size=1000"):
        World(twin, memory=10)


def test_a_closed_accumulator_takes_nothing(world: World) -> None:
    world.accumulator.closed = True
    assert world.accumulator.append("t", b"v") == Refusal.CLOSED
    assert world.accumulator.adopt(TopicPartition("t", 0), b"x" * 70) == Refusal.CLOSED


def test_forgotten_topics_are_unknown_until_they_come_back_larger(world: World) -> None:
    world.accumulator.forget_topic("t")
    assert world.accumulator.append("t", b"v", partition=0) == Refusal.TOPIC
    assert world.accumulator.partition_count("t") == 0
    world.accumulator.add_topic("t", 6)
    assert world.accumulator.append("t", b"v", partition=5).batch.partition.partition == 5
    assert world.accumulator.partition_count("t") == 6


def test_a_future_knows_nothing_then_everything(world: World) -> None:
    world.accumulator.append("t", b"first", partition=1)
    future = world.accumulator.append("t", b"value", b"ke", [("h", b"xyz")], 1, NOW - 9)
    assert (future.is_done, future.value, future.exception) == (False, None, None)
    assert not future.succeeded()
    assert not future.failed()
    [batch] = world.take()
    batch.complete(40, -1, 3)
    metadata = RecordMetadata("t", 1, TopicPartition("t", 1), 41, NOW - 9, 0, 3, None, 2, 5, 4)
    assert future.value == future.get() == metadata
    assert isinstance(future.value, RecordMetadata)
    assert future.succeeded()
    assert not future.retriable()
    assert world.waited == []


def test_a_future_waits_by_what_it_was_given(world: World) -> None:
    future = world.accumulator.append("t", b"v")
    assert future.get(1.5) is None
    assert world.waited == [(future.batch, 1.5)]


def test_the_brokers_time_wins(world: World) -> None:
    future = world.accumulator.append("t", b"v", timestamp_ms=5)
    world.take()[0].complete(0, 999)
    assert (future.value.timestamp, future.value.timestamp_type) == (999, 1)


def test_without_acknowledgement_there_is_no_offset(world: World) -> None:
    future = world.accumulator.append("t", b"v")
    world.take()[0].complete(-1)
    assert future.value.offset == -1


def test_failures_reach_futures_and_single_records_have_their_own(world: World) -> None:
    futures = [world.accumulator.append("t", b"v", partition=0) for _ in range(3)]
    whole, single = RetriableError("all"), BarnabasError("one")
    [batch] = world.take()
    batch.fail(whole, {1: single})
    assert [future.exception for future in futures] == [whole, single, whole]
    assert futures[0].failed()
    assert futures[0].retriable()
    assert not futures[1].retriable()
    with pytest.raises(RetriableError, match="all"):
        futures[0].get()
    batch.complete(5)  # the first word stands
    assert futures[0].exception is whole


def test_callbacks_are_called_once_in_order_also_when_they_come_late(world: World) -> None:
    said: list[Any] = []
    one = world.accumulator.append("t", b"v", partition=0)
    two = world.accumulator.append("t", b"v", partition=0)
    assert one.add_callback(lambda metadata: said.append(metadata.offset)) is one
    two.add_callback(
        lambda tag, metadata, more: said.append((tag, metadata.offset, more)), "x", more=1
    )
    one.add_errback(said.append)
    one.batch.watch(lambda: said.append("done"))
    one.batch.complete(10)
    one.add_both(lambda metadata: said.append(metadata.offset))
    one.batch.watch(lambda: said.append("late"))
    assert said == [10, ("x", 11, 1), "done", 10, "late"]


def test_errbacks_get_the_failure(world: World) -> None:
    said: list[Any] = []
    future = world.accumulator.append("t", b"v")
    failure = BarnabasError("no")
    future.add_callback(said.append)
    future.add_errback(lambda tag, error: said.append((tag, error)), "tag")
    future.add_both(said.append)
    future.batch.fail(failure)
    assert said == [("tag", failure), failure]


def test_a_callback_that_fails_stops_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    said: list[Any] = []
    future = world.accumulator.append("t", b"v")
    future.add_callback(lambda metadata: 1 / 0)
    future.add_callback(said.append)
    future.batch.complete(0)
    [logged] = caplog.records
    assert (logged.name, logged.getMessage()) == (
        "barnabas.producer",
        "record callback failed, the others are still called",
    )
    assert logged.exc_info is not None
    assert logged.exc_info[0] is ZeroDivisionError
    assert len(said) == 1


def test_asyncio_futures_are_set_unless_they_were_cancelled(world: World) -> None:
    class Promise:
        def __init__(self, done: bool = False) -> None:
            self.is_done = done
            self.said: list[Any] = []

        def done(self) -> bool:
            return self.is_done

        def set_result(self, value: Any) -> None:
            self.said.append(value.offset)

        def set_exception(self, failure: BaseException) -> None:
            self.said.append(failure)

    good, gone, bad = Promise(), Promise(done=True), Promise()
    future = world.accumulator.append("t", b"v")
    assert future.resolve(good) is good
    future.resolve(gone)
    world.take()[0].complete(3)
    other = world.accumulator.append("t", b"v")
    other.resolve(bad)
    failure = BarnabasError("x")
    world.take()[0].fail(failure)
    assert (good.said, gone.said, bad.said) == ([3], [], [failure])


def test_a_batch_that_was_split_answers_through_its_parts(world: World) -> None:
    futures = [world.accumulator.append("t", bytes([n]), partition=0) for n in range(5)]
    said: list[int] = []
    futures[4].add_callback(lambda metadata: said.append(metadata.offset))
    [batch] = world.take()
    halves = []
    rows = world.read(batch)
    for part in (rows[:2], rows[2:]):
        builder = kernels.BatchBuilder()
        builder.append_many(part)
        halves.append(builder.finish())
    parts = batch.split(halves)
    parts[1].complete(100)
    assert not futures[4].is_done
    parts[0].complete(50)
    assert [future.value.offset for future in futures] == [50, 51, 100, 101, 102]
    assert said == [102]
    assert batch.find(3)[0] is parts[1]
    assert batch.find(3)[1] == 1


def test_adopted_batches_keep_their_place(world: World) -> None:
    builder = kernels.BatchBuilder()
    builder.append_many([(NOW, None, b"a"), (NOW + 2, b"k", b"b")])
    world.accumulator.append("t", b"before", partition=3)
    batch = world.accumulator.adopt(TopicPartition("t", 3), builder.finish())
    world.accumulator.append("t", b"after", partition=3)
    assert (batch.count, batch.base_timestamp, batch.max_timestamp) == (2, NOW, NOW + 2)
    assert [b.count for b in world.take()] == [1, 2, 1]
    batch.complete(9)
    assert batch.future().value.offset == 9


def test_many_rows_in_one_call(world: World) -> None:
    rows = [
        b"value",
        (b"key", b"value"),
        (None, b"v", [("h", b"1")]),
        [b"k", b"v", None, 77],
        (None, b"v", (), None, 3),
    ]
    segments: list[Any] = []
    assert world.accumulator.append_many("t", rows, 0, segments, 0) == (5, None)
    assert [(s.batch.partition.partition, s.first, s.count) for s in segments] == [
        (0, 0, 4),
        (3, 0, 1),
    ]
    [first, second] = world.take()
    assert world.read(first) == [
        (NOW, None, b"value", ()),
        (NOW, b"key", b"value", ()),
        (NOW, None, b"v", (("h", b"1"),)),
        (77, b"k", b"v", ()),
    ]
    assert world.read(second) == [(NOW, None, b"v", ())]
    assert world.woken == 1


@pytest.mark.parametrize(
    "row", ["text", (b"k",), (b"k", b"v", None, "t"), (b"k", b"v", None, 1, "p"), (1, b"v")]
)
def test_a_bad_row_stops_there(world: World, row: Any) -> None:
    assert world.accumulator.append_many("t", [b"a", row, b"b"], 0, []) == (1, Refusal.TYPE)
    assert [batch.count for batch in world.take()] == [1]


def test_rows_that_find_no_memory_can_go_on_later(world: World) -> None:
    rows = [b"x" * 900] * 150
    segments: list[Any] = []
    taken, refusal = world.accumulator.append_many("t", rows, 0, segments, 0)
    assert (taken, refusal) == (100, Refusal.MEMORY)
    for batch in world.take():
        batch.complete(0)
    assert world.accumulator.append_many("t", rows, taken, segments, 0) == (150, None)
    assert sum(segment.count for segment in segments) == 150


def column(cells: list[bytes | None]) -> tuple[bytes | None, bytes, bytes]:
    offsets = array("i", [0])
    bits = bytearray((len(cells) + 7) // 8)
    data = b""
    for index, cell in enumerate(cells):
        if cell is not None:
            bits[index >> 3] |= 1 << (index & 7)
            data += cell
        offsets.append(len(data))
    return bytes(bits), offsets.tobytes(), data


def test_rows_of_arrow_columns(world: World) -> None:
    keys, values = column([None, b"k", None]), column([b"a", b"b", b"c"])
    times = array("q", [5, -1, 7]).tobytes()
    targets = array("i", [1, 1, -1]).tobytes()
    segments: list[Any] = []
    answer = world.accumulator.append_columns("t", times, keys, values, targets, 0, 3, segments, 2)
    assert answer == (3, None)
    batches = {batch.partition.partition: world.read(batch) for batch in world.take()}
    assert batches == {
        1: [(5, None, b"a", ()), (NOW, b"k", b"b", ())],
        2: [(7, None, b"c", ())],
    }
    with pytest.raises(InvalidValueError):
        world.accumulator.append_columns("t", times, keys, values, None, 0, 4, [])
    with pytest.raises(InvalidValueError):
        world.accumulator.append_columns("t", None, None, values, None, -1, 1, [])


def test_compressed_and_numbered_batches(world: World) -> None:
    world.accumulator.append("t", b"v", partition=0)
    [batch] = world.take()
    plain = bytes(batch.finish(0, None, 4000, 3, 17, 0x10))
    header = kernels.check_batch(plain)
    assert header.attributes == 0x10
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 3, 17)
    packed = batch.finish(4, b"packed", 1, 2, 3)
    header = kernels.check_batch(packed)
    assert bytes(packed[HEADER_SIZE:]) == b"packed"
    assert header.attributes == 4
    assert header.count == 1


def test_memory_that_was_given_back_cannot_be_read(world: World) -> None:
    world.accumulator.append("t", b"v")
    [batch] = world.take()
    batch.complete(0)
    with pytest.raises(AssertionError, match="was released"):
        batch.view()


@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=30),
            st.binary(max_size=300),
            st.none() | st.integers(0, 3),
            st.none() | st.integers(0, NOW),
        ),
        max_size=60,
    )
)
def test_both_twins_make_the_same_batches(
    twins: tuple[ModuleType, ModuleType], records: list[tuple[Any, ...]]
) -> None:
    made = []
    for twin in twins:
        world = World(twin, memory=1_000_000, batch_size_max=2000)
        for key, value, partition, time_ms in records:
            world.accumulator.append("t", value, key, None, partition, time_ms)
        made.append([(b.partition, b.count, bytes(b.finish())) for b in world.take()])
    assert made[0] == made[1]

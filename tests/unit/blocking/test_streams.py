"""Streams of the ZooKeeper era for plain programs: an iterator's states, the plain consumer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import bombs
from tests.unit.broker.serving import Serving, create_topic, produce

from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.streams import (
    EARLIEST,
    LATEST,
    FetchRequestBuilder,
    IteratorState,
    KafkaStream,
    PartitionOffsetRequestInfo,
    SimpleConsumer,
)
from barnabas.client.errors import ConsumerTimeout, IllegalStateError
from barnabas.consumer.streams.chunks import ChunkQueue, PartitionFeed
from barnabas.consumer.streams.iteration import Iteration
from barnabas.errors import RecordTooLargeError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import Record
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.records.legacy import encode_message

PLACE = TopicPartition("t", 0)


class Streamed:
    """A stream whose chunks the test puts into its queue."""

    def __init__(self, timeout_ms: int = 100) -> None:
        self.thread = LoopThread("test-streams")
        self.queue = self.on_loop(lambda: ChunkQueue(9, lambda: None))
        self.feed = PartitionFeed(PLACE, self.queue, 0)
        self.stream = KafkaStream(self.thread, self.queue, timeout_ms, None, bytes.decode)

    def on_loop(self, act):  # type: ignore[no-untyped-def]
        async def run() -> object:
            return act()

        return self.thread.call(run())

    def put(self, *values: str, codec: str = "none") -> None:
        batch = bytearray(build_batch([(1, None, value.encode()) for value in values], codec))
        batch[:8] = self.feed.fetched.to_bytes(8, "big")
        self.on_loop(lambda: self.feed.receive(bytes(batch)))


@pytest.fixture
def streamed() -> Iterator[Streamed]:
    made = Streamed()
    yield made
    made.thread.stop()


def test_has_next_finds_a_message_and_leaves_it_unconsumed(streamed: Streamed) -> None:
    stream = streamed.stream
    assert stream.state is IteratorState.NOT_READY
    streamed.put("a", "b", codec="gzip")
    assert stream.has_next()
    assert stream.has_next()
    assert stream.state is IteratorState.READY
    assert streamed.feed.consumed == 0, "a commit now must not cover it"
    message = next(stream)
    assert (message.topic, message.partition, message.offset, message.message) == ("t", 0, 0, "a")
    assert stream.state is IteratorState.NOT_READY
    assert streamed.feed.consumed == 1
    assert stream.iterator().next().message == "b"
    assert streamed.feed.consumed == 2


def test_a_timeout_leaves_the_stream_ready_to_be_asked_again(streamed: Streamed) -> None:
    for ask in (streamed.stream.has_next, streamed.stream.next):
        with pytest.raises(ConsumerTimeout):
            ask()
        assert streamed.stream.state is IteratorState.NOT_READY
    streamed.put("late")
    assert next(streamed.stream).message == "late"


def test_the_end_is_done_and_stays_so(streamed: Streamed) -> None:
    streamed.on_loop(streamed.queue.close)
    for _ in range(2):
        assert not streamed.stream.has_next()
        assert streamed.stream.state is IteratorState.DONE
        with pytest.raises(StopIteration):
            next(streamed.stream)


def test_waiting_for_the_next_ends_with_the_stream() -> None:
    streamed = Streamed(timeout_ms=-1)
    try:
        found: list[bool] = []
        waiter = threading.Thread(target=lambda: found.append(streamed.stream.has_next()))
        waiter.start()
        streamed.on_loop(streamed.queue.close)
        waiter.join(30)
        assert found == [False]
    finally:
        streamed.thread.stop()


def test_after_a_failure_every_call_says_so(streamed: Streamed) -> None:
    streamed.put("a")
    assert next(streamed.stream).message == "a"
    spoiled = bytearray(build_batch([(1, None, b"x")]))
    spoiled[-1] ^= 1
    streamed.on_loop(lambda: streamed.feed.receive(bytes(spoiled)))
    streamed.put("b")
    with pytest.raises(CorruptRecordError, match="CRC"):
        streamed.stream.has_next()
    assert streamed.stream.state is IteratorState.FAILED
    for ask in (streamed.stream.has_next, streamed.stream.next):
        with pytest.raises(IllegalStateError, match=r"FAILED: .*CRC"):
            ask()


def test_a_message_of_a_partition_that_went_is_not_given_out(streamed: Streamed) -> None:
    """Another consumer may have it by now."""
    streamed.put("gone")
    assert streamed.stream.has_next()
    streamed.feed.released = True
    with pytest.raises(ConsumerTimeout):
        next(streamed.stream)
    assert streamed.feed.consumed == 0
    streamed.feed = PartitionFeed(TopicPartition("t", 1), streamed.queue, 0)
    streamed.put("mine")
    assert next(streamed.stream).partition == 1


def test_clearing_forgets_the_message_that_was_found(streamed: Streamed) -> None:
    streamed.put("dropped", "too")
    assert streamed.stream.has_next()
    streamed.stream.clear()
    assert streamed.stream.state is IteratorState.NOT_READY
    streamed.put("kept")
    assert next(streamed.stream).message == "kept"


def test_a_record_that_is_not_to_be_unpacked_is_named(streamed: Streamed) -> None:
    bomb = bombs.batch(Codec.GZIP, bombs.one_record(40 << 20))
    streamed.on_loop(lambda: streamed.feed.receive(bomb))
    with pytest.raises(RecordTooLargeError, match=r"t-0, offset 0: .*barnabas\.unpacked\.record"):
        next(streamed.stream)


def test_messages_of_old_formats_are_read(streamed: Streamed) -> None:
    data = encode_message(Record(0, 1, None, b"old", ()), 1)
    streamed.on_loop(lambda: streamed.feed.receive(data))
    assert next(streamed.stream).message == "old"


def test_an_interrupt_is_no_failure() -> None:
    """Ctrl-C while waiting says nothing about the messages."""
    answers = iter([KeyboardInterrupt(), "item"])

    def make_next() -> str:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    iteration = Iteration(make_next)
    with pytest.raises(KeyboardInterrupt):
        iteration.has_next()
    assert iteration.state is IteratorState.NOT_READY
    with pytest.raises(IllegalStateError, match="NOT_READY"):
        iteration.take()
    assert iteration.has_next()
    assert iteration.take() == "item"


# The plain consumer.


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data"), {}) as running:
        yield running


@pytest.fixture
def simple(serving: Serving) -> Iterator[SimpleConsumer]:
    consumer = SimpleConsumer(*serving.address, 20_000, 64 * 1024, "audit")
    yield consumer
    consumer.close()


def test_a_built_request_is_answered_with_decoded_message_sets(
    serving: Serving, simple: SimpleConsumer
) -> None:
    with serving.connect() as wire:
        for name in ("plain", "packed"):
            create_topic(wire, name)
        rows = [(7, b"k", b"one", (("h", b"v"),)), (8, None, b"two"), (9, b"k", None)]
        produce(wire, "plain", build_batch(rows))
        produce(wire, "packed", build_batch(rows, "lz4"))
        produce(wire, "packed", build_batch([(10, None, b"four")], "zstd"))
    builder = FetchRequestBuilder().client_id("me").max_wait(100).min_bytes(1)
    request = builder.add_fetch("plain", 0, 0, 100_000).add_fetch("packed", 0, 1, 100_000).build()
    for _ in range(2):
        response = simple.fetch(request)
        assert not response.has_error
        plain = response.message_set("plain", 0)
        first, _, third = plain
        assert (first.offset, first.next_offset) == (0, 1)
        message: Any = first.message
        assert message == (b"k", b"one", 7, (("h", b"v"),))
        assert (message.has_key, third.message.is_null) == (True, True)
        packed = response.message_set("packed", 0)
        for _ in range(2):
            assert [each.offset for each in packed] == [1, 2, 3], "0 was not asked for"
        assert [each.message.payload for each in packed] == [b"two", None, b"four"]
        assert packed.next_offset == 4
        assert 0 < packed.valid_bytes <= packed.size_in_bytes
        assert response.high_watermark("packed", 0) == 4
        assert response.error_code("packed", 0) is ErrorCode.NONE
    with pytest.raises(InvalidValueError, match="other-5 was not in the request"):
        response.error_code("other", 5)
    assert builder.build().partitions == {}


def test_errors_of_partitions_are_in_the_answer(simple: SimpleConsumer, serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "short")
    request = (
        FetchRequestBuilder()
        .add_fetch("short", 0, 9, 1000)
        .add_fetch("short", 7, 0, 1000)
        .add_fetch("nowhere", 0, 0, 1000)
        .build()
    )
    response = simple.fetch(request)
    assert response.has_error
    assert response.error_code("short", 0) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert response.error_code("short", 7) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert response.error_code("nowhere", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(response.message_set("short", 0)) == []
    for wrong in (("t", 0, -1, 10), ("t", 0, 0, -10)):
        with pytest.raises(InvalidValueError, match="must be at least 0"):
            FetchRequestBuilder().add_fetch(*wrong)


def test_several_offsets_before_a_time(serving: Serving, simple: SimpleConsumer) -> None:
    with serving.connect() as wire:
        create_topic(wire, "rolled", configs={"segment.bytes": "300"})
        for _ in range(5):
            produce(wire, "rolled", build_batch([(1, None, bytes(200))]))
    place = TopicPartition("rolled", 0)

    def offsets(time: int, count: int) -> tuple[int, ...]:
        response = simple.get_offsets_before({place: PartitionOffsetRequestInfo(time, count)})
        assert not response.has_error
        return response.offsets("rolled", 0)

    assert offsets(LATEST, 10) == (5, 4, 3, 2, 1, 0)
    assert offsets(LATEST, 2) == (5, 4)
    assert offsets(EARLIEST, 10) == (0,)
    assert offsets(1000, 10) == (), "no segment is that old"
    missing = TopicPartition("nowhere", 3)
    response = simple.get_offsets_before({missing: PartitionOffsetRequestInfo(LATEST, 1)})
    assert response.has_error
    assert response.error_code("nowhere", 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert response.offsets("nowhere", 3) == ()


def test_a_connection_that_was_closed_is_opened_once_more(tmp_path: Path) -> None:
    with Serving(tmp_path, {"connections.max.idle.ms": "100"}) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            produce(wire, "t", build_batch([(1, None, b"x")]))
        consumer = SimpleConsumer(*serving.address, 20_000, 64 * 1024, "audit")
        try:
            request = FetchRequestBuilder().add_fetch("t", 0, 0, 1000).build()
            assert len(list(consumer.fetch(request).message_set("t", 0))) == 1
            first = consumer._broker._connections["audit"]

            consumer._thread.call(first.wait_closed(30_000))
            assert first.closed
            assert len(list(consumer.fetch(request).message_set("t", 0))) == 1
        finally:
            consumer.close()


def test_brokers_may_be_given_as_a_list(serving: Serving) -> None:
    host, port = serving.address
    consumer = SimpleConsumer(f"{host}:{port},{host}:1")
    try:
        request = FetchRequestBuilder().add_fetch("nowhere", 0, 0, 1000).build()
        assert consumer.fetch(request).has_error
    finally:
        consumer.close()

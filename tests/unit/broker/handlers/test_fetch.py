"""Fetch: bounds, waiting, isolation, ids, old formats and sessions, as a consumer sees them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    produce,
    values_of,
)

from barnabas.model.error_codes import ErrorCode
from barnabas.records.batch import read_headers
from barnabas.records.legacy import iterate_messages
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

FETCH_VERSIONS = range(4, 13)


def delete_topic(wire: Wire, name: str) -> None:
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000), 6)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_reads_from_an_offset(wire: Wire, topic: str, version: int) -> None:
    """The batch that holds the offset is the first; the watermarks are told."""
    produce(wire, topic, batch_of(["a", "b"]))
    produce(wire, topic, batch_of(["c"]))
    result = fetch(wire, topic, 1, version)
    assert values_of(result) == [b"a", b"b", b"c"]
    assert (result.high_watermark, result.last_stable_offset) == (3, 3)
    assert values_of(fetch(wire, topic, 2, version)) == [b"c"]
    assert values_of(fetch(wire, topic, 3, version)) == []


@pytest.mark.parametrize("offset", [-1, 2, 2**40])
def test_offsets_out_of_range(wire: Wire, topic: str, offset: int) -> None:
    """An offset that the log does not have is refused at once, however long the client waits."""
    produce(wire, topic, batch_of(["a"]))
    result = fetch(wire, topic, offset, max_wait_ms=60_000)
    assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert result.high_watermark == -1


def test_deleted_records_are_out_of_range(wire: Wire, topic: str) -> None:
    """Below the log start there is nothing any more."""
    produce(wire, topic, batch_of(["a"]))
    produce(wire, topic, batch_of(["b"]))
    wanted = DeleteRecordsPartition(partition_index=0, offset=1)
    wire.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])]))
    assert fetch(wire, topic, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    result = fetch(wire, topic, 1)
    assert (result.log_start_offset, values_of(result)) == (1, [b"b"])


def test_unknown_topics_and_partitions(wire: Wire, topic: str) -> None:
    """They are told at once, even if the client would wait."""
    assert fetch(wire, "nowhere", max_wait_ms=60_000).error_code == 3
    assert fetch(wire, "", max_wait_ms=60_000).error_code == 3, "old clients know no other code"
    assert fetch(wire, topic, partition=1, max_wait_ms=60_000).error_code == 3
    assert fetch(wire, b"u" * 16, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_leader_epochs_are_checked(wire: Wire, topic: str) -> None:
    """A client that knows another epoch is sent back to the metadata, at once."""
    assert fetch(wire, topic, leader_epoch=0).error_code == 0
    newer = fetch(wire, topic, leader_epoch=1, max_wait_ms=60_000)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_long_poll_ends_with_an_append(serving: Serving, wire: Wire, topic: str) -> None:
    """A fetch that waits is answered by an append on another connection."""
    with serving.connect() as consumer:
        consumer.send(fetch_request(topic, max_wait_ms=60_000), 12)
        serving.wait_inside(lambda: len(serving.broker.partitions.fetch_purgatory), "a fetch waits")
        produce(wire, topic, batch_of(["news"]))
        _, response = consumer.receive(FetchRequest, 12)
    assert values_of(response.responses[0].partitions[0]) == [b"news"]


def test_a_long_poll_waits_for_enough_bytes(serving: Serving, wire: Wire, topic: str) -> None:
    """min_bytes counts over several appends."""
    small = batch_of(["x"])
    with serving.connect() as consumer:
        consumer.send(fetch_request(topic, max_wait_ms=60_000, min_bytes=2 * len(small)), 12)
        serving.wait_inside(lambda: len(serving.broker.partitions.fetch_purgatory), "a fetch waits")
        produce(wire, topic, small)
        assert serving.inside(lambda: len(serving.broker.partitions.fetch_purgatory)) == 1
        produce(wire, topic, small)
        _, response = consumer.receive(FetchRequest, 12)
    assert values_of(response.responses[0].partitions[0]) == [b"x", b"x"]


def test_a_long_poll_ends_at_its_deadline(wire: Wire, topic: str) -> None:
    """Nothing came: the answer is empty, and no error."""
    result = fetch(wire, topic, max_wait_ms=30)
    assert (result.error_code, values_of(result)) == (0, [])


def test_a_long_poll_ends_with_the_topic(serving: Serving, wire: Wire, topic: str) -> None:
    """Who waits for a topic that is deleted is told."""
    with serving.connect() as consumer:
        consumer.send(fetch_request(topic, max_wait_ms=60_000), 12)
        serving.wait_inside(lambda: len(serving.broker.partitions.fetch_purgatory), "a fetch waits")
        delete_topic(wire, topic)
        _, response = consumer.receive(FetchRequest, 12)
    assert response.responses[0].partitions[0].error_code == 3


def test_a_client_that_goes_away_waits_no_more(serving: Serving, wire: Wire, topic: str) -> None:
    """Nothing is kept for a closed connection."""
    with serving.connect() as consumer:
        consumer.send(fetch_request(topic, max_wait_ms=60_000), 12)
        serving.wait_inside(lambda: len(serving.broker.partitions.fetch_purgatory), "a fetch waits")
    serving.wait_inside(lambda: not len(serving.broker.partitions.fetch_purgatory), "nothing waits")


def test_the_first_batch_always_comes(wire: Wire, topic: str) -> None:
    """A batch larger than every limit still arrives whole, so that the consumer gets on."""
    large = batch_of([b"x" * 5000])
    produce(wire, topic, large)
    produce(wire, topic, batch_of(["next"]))
    result = fetch(wire, topic, partition_max_bytes=1, max_bytes=1)
    assert len(result.records or b"") == len(large)


@pytest.mark.parametrize("version", [3, 4, 12])
def test_the_limits_hold_after_the_first_batch(
    wire: Wire, new_name: Callable[[], str], version: int
) -> None:
    """Later partitions get whole first batches within the limit, or nothing: never a piece of one.

    A consumer that got a piece would find no record in it, and complain.
    """
    name = new_name()
    create_topic(wire, name, 2)
    batch = batch_of([b"x" * 1000])
    for partition in (0, 1):
        produce(wire, name, batch, partition=partition)
    wanted = [FetchPartition(partition=each, partition_max_bytes=1 << 20) for each in (0, 1)]
    request = FetchRequest(
        max_bytes=len(batch) + 200, topics=[FetchTopic(topic=name, partitions=wanted)]
    )
    (topic,) = wire.ask(request, version).responses
    sizes = [len(each.records or b"") for each in topic.partitions]
    assert sizes[0] > 0
    assert sizes[1] == 0


def test_the_brokers_own_limit_holds(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """fetch.max.bytes bounds an answer whatever the client asks for."""
    with (
        Serving(tmp_path_factory.mktemp("small"), {"fetch.max.bytes": 1024}) as small,
        small.connect() as wire,
    ):
        create_topic(wire, "t")
        for _ in range(10):
            produce(wire, "t", batch_of([b"x" * 300]))
        assert 1000 <= len(fetch(wire, "t").records or b"") <= 1024


def test_read_committed_without_transactions(wire: Wire, topic: str) -> None:
    """Everything is committed, and no transaction is aborted."""
    produce(wire, topic, batch_of(["a"]))
    result = fetch(wire, topic, isolation_level=1)
    assert (values_of(result), result.aborted_transactions) == ([b"a"], [])
    assert fetch(wire, topic).aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
def test_topic_ids(wire: Wire, new_name: Callable[[], str], version: int) -> None:
    """From v13 on topics are named by id, in requests and answers."""
    topic_id = create_topic(wire, name := new_name())
    produce(wire, name, batch_of(["a"]))
    response = wire.ask(fetch_request(topic_id), version)
    (topic,) = response.responses
    assert (topic.topic_id, values_of(topic.partitions[0])) == (topic_id, [b"a"])


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_old_formats(wire: Wire, topic: str, version: int, magic: int, codec: str) -> None:
    """The oldest consumers get messages as they know them, with the right offsets."""
    produce(wire, topic, batch_of(["a", "b"], codec))
    produce(wire, topic, batch_of(["c"], codec))
    result = fetch(wire, topic, 1, version)
    data = bytes(result.records or b"")
    assert data[16] == magic
    messages = [m for m in iterate_messages(data) if m.offset >= 1]
    assert [(m.offset, m.value) for m in messages] == [(1, b"b"), (2, b"c")]


@pytest.mark.parametrize("version", range(4))
def test_old_formats_can_be_forbidden(
    wire: Wire, new_name: Callable[[], str], version: int
) -> None:
    """message.downconversion.enable=false: old readers are told, new ones are served."""
    create_topic(wire, name := new_name(), configs={"message.downconversion.enable": "false"})
    assert fetch(wire, name, version=version).error_code == 0, "there is nothing to convert"
    assert produce(wire, name, batch_of(["x"])).error_code == 0
    refused = fetch(wire, name, version=version)
    assert (refused.error_code, refused.records) == (ErrorCode.UNSUPPORTED_VERSION, b"")
    assert values_of(fetch(wire, name, version=4)) == [b"x"]


def test_zstd_is_not_sent_to_old_versions(wire: Wire, new_name: Callable[[], str]) -> None:
    """A topic whose codec is zstd tells consumers that cannot know it."""
    create_topic(wire, name := new_name(), configs={"compression.type": "zstd"})
    produce(wire, name, batch_of(["a"]))
    refused = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [fetch(wire, name, version=v).error_code for v in (4, 9, 10)] == [refused, refused, 0]


def test_a_recreated_topic_is_another_one(wire: Wire, new_name: Callable[[], str]) -> None:
    """A session that reads a topic by its id never sees a later topic of the same name."""
    old = create_topic(wire, name := new_name())
    produce(wire, name, batch_of(["old"]))
    first = wire.ask(fetch_request(old, session_epoch=0), 13)
    assert values_of(first.responses[0].partitions[0]) == [b"old"]
    delete_topic(wire, name)
    new = create_topic(wire, name)
    produce(wire, name, batch_of(["new"]))
    again = FetchRequest(
        session_id=first.session_id, session_epoch=1, min_bytes=1, max_wait_ms=60_000
    )
    result = wire.ask(again, 13).responses[0].partitions[0]
    assert result.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
    assert values_of(result) == []
    assert values_of(fetch(wire, new, version=13)) == [b"new"]


class Session:
    """A fetch session of a test, over some partitions of one topic."""

    def __init__(self, wire: Wire, topic: str, partitions: int, version: int = 12) -> None:
        self.wire, self.topic, self.version = wire, topic, version
        self.offsets = dict.fromkeys(range(partitions), 0)
        answer = self.ask(0, 0, self.offsets)
        assert len(answer.responses[0].partitions) == partitions
        self.id = answer.session_id
        self.epoch = 0

    def ask(self, session_id: int, epoch: int, offsets: dict[int, int], **more: Any) -> Any:
        wanted = [
            FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=10_000)
            for p, o in offsets.items()
        ]
        topics = [FetchTopic(topic=self.topic, partitions=wanted)] if wanted else []
        return self.wire.ask(
            FetchRequest(
                session_id=session_id,
                session_epoch=epoch,
                max_bytes=1 << 20,
                topics=topics,
                **more,
            ),
            self.version,
        )

    def next(self, **offsets: int) -> dict[int, list[bytes | None]]:
        """Ask for what changed; return the values by partition."""
        self.epoch += 1
        changed = {int(name[1:]): offset for name, offset in offsets.items()}
        answer = self.ask(self.id, self.epoch, changed)
        assert (answer.error_code, answer.session_id) == (0, self.id)
        return {
            each.partition_index: values_of(each)
            for topic in answer.responses
            for each in topic.partitions
        }


def test_a_session_tells_only_changes(wire: Wire, new_name: Callable[[], str]) -> None:
    """After the full answer, partitions show only when there is something to tell."""
    create_topic(wire, name := new_name(), 3)
    session = Session(wire, name, 3)
    assert session.id > 0
    assert session.next() == {}
    produce(wire, name, batch_of(["a"]), partition=1)
    assert session.next() == {1: [b"a"]}
    assert session.next() == {1: [b"a"]}, "the position did not move"
    assert session.next(p1=1) == {}
    wanted = DeleteRecordsPartition(partition_index=1, offset=1)
    wire.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[wanted])]))
    assert session.next() == {1: []}, "the log start moved"
    assert session.next() == {}


def test_a_session_forgets(wire: Wire, new_name: Callable[[], str]) -> None:
    """A forgotten partition is not read; a session without partitions is closed."""
    create_topic(wire, name := new_name(), 2)
    session = Session(wire, name, 2)
    for partition in (0, 1):
        produce(wire, name, batch_of([f"p{partition}"]), partition=partition)
    forgotten = [ForgottenTopic(topic=name, partitions=[0])]
    answer = session.ask(session.id, 1, {}, forgotten_topics_data=forgotten)
    assert [each.partition_index for each in answer.responses[0].partitions] == [1]
    forgotten = [ForgottenTopic(topic=name, partitions=[1])]
    answer = session.ask(session.id, 2, {}, forgotten_topics_data=forgotten)
    assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, [])
    assert session.ask(session.id, 3, {}).error_code == 70


def test_session_errors(wire: Wire, new_name: Callable[[], str]) -> None:
    """Unknown ids, wrong epochs and a mix of names and ids each have their code."""
    create_topic(wire, name := new_name())
    session = Session(wire, name, 1)
    assert session.ask(12345, 1, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.ask(session.id, 2, {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    request = FetchRequest(session_id=session.id, session_epoch=1)
    assert wire.ask(request, 13).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert session.next() == {}, "the errors left the session as it was"


def test_closing_a_session(wire: Wire, new_name: Callable[[], str]) -> None:
    """Epoch -1 ends a session and still reads everything that is asked for."""
    create_topic(wire, name := new_name())
    session = Session(wire, name, 1)
    answer = session.ask(session.id, -1, {0: 0})
    assert (answer.session_id, len(answer.responses)) == (0, 1)
    assert session.ask(session.id, 1, {}).error_code == 70


def test_renewing_a_session(wire: Wire, new_name: Callable[[], str]) -> None:
    """Epoch 0 with an id closes the old session and makes another."""
    create_topic(wire, name := new_name())
    session = Session(wire, name, 1)
    answer = session.ask(session.id, 0, {0: 0})
    assert answer.session_id not in (0, session.id)
    assert session.ask(session.id, 1, {}).error_code == 70


def test_an_error_shows_again_when_it_is_over(wire: Wire, new_name: Callable[[], str]) -> None:
    """A partition that failed shows its watermark once it is well again."""
    create_topic(wire, name := new_name())
    session = Session(wire, name, 1)
    assert session.next(p0=99) == {0: []}
    assert session.next() == {0: []}, "an error is told every time"
    assert session.next(p0=0) == {0: []}
    assert session.next() == {}


def test_sessions_are_bounded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a free slot a client is served all the same, session or not."""
    options = {"max.incremental.fetch.session.cache.slots": 1}
    with (
        Serving(tmp_path_factory.mktemp("slots"), options) as small,
        small.connect() as wire,
    ):
        create_topic(wire, "t", 3)
        first = Session(wire, "t", 2)
        assert first.id
        assert Session(wire, "t", 2).id == 0, "a session of the same size does not push it out"
        larger = Session(wire, "t", 3)
        assert larger.id, "a larger one does"
        assert first.ask(first.id, 1, {}).error_code == 70


def test_unknown_fetched_epochs(wire: Wire, topic: str) -> None:
    """A reader whose last epoch we never had is out of range (v12)."""
    produce(wire, topic, batch_of(["a"]))
    wanted = FetchPartition(
        partition=0, fetch_offset=1, last_fetched_epoch=0, partition_max_bytes=1000
    )
    request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])])
    result = wire.ask(request, 12).responses[0].partitions[0]
    assert (result.error_code, result.diverging_epoch) == (0, None)
    wanted.last_fetched_epoch = 5
    result = wire.ask(request, 12).responses[0].partitions[0]
    assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_followers_are_known_by_either_field(wire: Wire, topic: str) -> None:
    """A replica id moves to a tag in v15; both are read."""
    assert fetch(wire, topic, version=12, replica_id=5).error_code == 0
    request = fetch_request(topic, replica_state=ReplicaState(replica_id=5))
    assert wire.ask(request, 15).error_code == 0


@pytest.mark.parametrize("size", [100, 70_000, 3_000_000])
def test_large_answers_are_identical(wire: Wire, new_name: Callable[[], str], size: int) -> None:
    """What leaves by sendfile is what small reads return."""
    create_topic(wire, name := new_name(), configs={"max.message.bytes": "10000000"})
    for index in range(3):
        produce(wire, name, batch_of([bytes([index]) * size]))
    whole = bytes(fetch(wire, name, partition_max_bytes=1 << 25).records or b"")
    pieces = [
        bytes(fetch(wire, name, index, partition_max_bytes=1).records or b"") for index in range(3)
    ]
    assert whole == b"".join(pieces)
    assert [header.base_offset for header in read_headers(whole)] == [0, 1, 2]


def test_a_slow_reader_gets_everything(serving: Serving, new_name: Callable[[], str]) -> None:
    """An answer larger than the socket's buffers arrives whole, between small ones."""
    with serving.connect() as slow, serving.connect() as other:
        create_topic(slow, name := new_name(), configs={"max.message.bytes": "20000000"})
        values = [bytes([index]) * 4_000_000 for index in range(3)]
        for value in values:
            produce(slow, name, batch_of([value]))
        requests = [fetch_request(name, partition_max_bytes=1 << 25), fetch_request("nowhere")] * 2
        for request in requests:
            slow.send(request, 12)
        for _ in range(20):  # the broker serves others meanwhile
            assert fetch(other, "nowhere").error_code == 3
        for index in range(4):
            _, response = slow.receive(FetchRequest, 12)
            result = response.responses[0].partitions[0]
            assert values_of(result) == (values if index % 2 == 0 else [])
    serving.expect_no_lines()


def test_a_reset_in_the_middle_releases_the_file(
    serving: Serving, new_name: Callable[[], str]
) -> None:
    """A client that vanishes while a file is sent to it leaves no pin behind."""
    import socket
    import struct

    with serving.connect() as wire:
        create_topic(wire, name := new_name(), configs={"max.message.bytes": "20000000"})
        for _ in range(3):
            produce(wire, name, batch_of([bytes(4_000_000)]))

    def pins() -> int:
        log = serving.broker.partitions[name, 0].log
        return sum(segment.file.pins for segment in log.segments)

    before = serving.inside(pins)
    victim = serving.connect()
    victim.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    victim.send(fetch_request(name, partition_max_bytes=1 << 25), 12)
    serving.wait_inside(lambda: pins() > before, "the file is pinned")
    victim.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    victim.socket.close()
    serving.wait_inside(lambda: pins() == before, "the pin is gone")
    serving.expect_no_lines()


def test_many_readers_of_one_append(serving: Serving, wire: Wire, topic: str) -> None:
    """One append answers everyone who waits for it."""
    readers = [serving.connect() for _ in range(20)]
    for reader in readers:
        reader.send(fetch_request(topic, max_wait_ms=60_000), 12)
    serving.wait_inside(lambda: len(serving.broker.partitions.fetch_purgatory) == 20, "all wait")
    produce(wire, topic, batch_of(["for all"]))
    answers: list[list[bytes | None]] = []

    def receive(reader: Wire) -> None:
        _, response = reader.receive(FetchRequest, 12)
        answers.append(values_of(response.responses[0].partitions[0]))
        reader.socket.close()

    threads = [threading.Thread(target=receive, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [[b"for all"]] * 20

"""Fetching from scripted brokers: sessions, leaders that move, errors, truncation, old versions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE
from tests.unit.consumer.scripted import P, Scripted, simulate

from barnabas.aio.consumer import AIOKafkaConsumer
from barnabas.consumer.reset import ResetPolicy
from barnabas.errors import (
    CorruptRecordError,
    LogTruncationError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.records.control import ControlType, build_control_batch
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
)
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

Story = Callable[[Scripted, AIOKafkaConsumer], Awaitable[None]]


def play(story: Story, *, nodes: int = 1, versions: Any = None, **options: Any) -> Scripted:
    """Run a story with a consumer that reads the one partition from the start."""

    async def main() -> Scripted:
        async with Scripted(nodes, versions) as brokers:
            options.setdefault("auto_offset_reset", "earliest")
            reader = AIOKafkaConsumer(
                bootstrap_servers=brokers.bootstrap, retry_backoff_ms=5, **options
            )
            reader.assign([P])
            async with reader:
                await story(brokers, reader)
            return brokers

    return simulate(main())


async def until(condition: Callable[[], bool]) -> None:
    """Let the others run until something is so; `play` bounds the time."""
    while not condition():  # noqa: ASYNC110  # brokers note what they hear in plain lists
        await asyncio.sleep(0.001)


async def read(reader: AIOKafkaConsumer, count: int) -> list[int]:
    return [int((await reader.getone()).value) for _ in range(count)]


def test_sessions_name_only_what_moved() -> None:
    """The first fetch is full, later ones go on in the session with a growing epoch."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(7)
        assert await read(reader, 7) == list(range(7))

    fetches = [request for _, _, request in play(story).fetches]
    assert [(each.session_id, each.session_epoch) for each in fetches[:3]] == [
        (0, 0),
        (77, 1),
        (77, 2),
    ]
    assert [each.topics[0].partitions[0].fetch_offset for each in fetches[:3]] == [0, 3, 6]


def test_the_end_is_told() -> None:
    """A consumer that closes ends its session, also while a fetch waits at the broker."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(4)
        assert await read(reader, 4) == list(range(4))
        await until(lambda: brokers.fetches[-1][2].topics[0].partitions[0].fetch_offset == 4)
        assert not brokers.ended

    brokers = play(story)
    assert [(node, last.session_id, last.session_epoch) for node, last in brokers.ended] == [
        (0, 77, -1)
    ]
    last = brokers.ended[0][1]
    assert (last.topics, last.forgotten_topics_data, last.max_wait_ms) == ([], [], 0)


def test_a_broker_that_does_not_hear_of_the_end() -> None:
    """Closing does not wait for it longer than it may."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(1)
        assert await read(reader, 1) == [0]
        await until(lambda: len(brokers.fetches) > 1)
        brokers.deaf = True
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await reader.stop()
        assert brokers.ended
        assert loop.time() - began_s < 5  # the request's own time is 40 s

    play(story)


def test_a_broker_that_is_left_is_told() -> None:
    """When its partitions have moved elsewhere, its session is ended, and reading goes on."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(4)
        assert await read(reader, 1) == [0]
        brokers.leader, brokers.epoch = 1, 1
        brokers.epoch_end = (0, 4)
        brokers.append(4)
        reader.seek(P, 2)
        assert await read(reader, 6) == [2, 3, 4, 5, 6, 7]
        await until(lambda: 0 in [node for node, _ in brokers.ended])

    brokers = play(story, nodes=2)
    assert {node for node, _ in brokers.ended} == {0, 1}


def test_without_a_session_no_end_is_told() -> None:
    """Where a broker had no room for a session, or none is wanted, there is nothing to end."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.session_id = 0
        brokers.append(4)
        assert await read(reader, 4) == list(range(4))

    assert not play(story).ended
    assert not play(story, enable_incremental_fetch_sessions=False).ended


@pytest.mark.parametrize(
    "code",
    [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH],
)
def test_a_session_that_is_lost(code: ErrorCode) -> None:
    """Whatever the broker forgot, reading goes on with a full fetch, and nothing is repeated."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(9)
        told = []

        def answer(node: int, request: FetchRequest, version: int) -> Any:
            if request.session_epoch == 2 and not told:
                told.append(request)
                return FetchResponse(error_code=code)
            return NotImplemented

        brokers.answer = answer
        assert await read(reader, 9) == list(range(9))
        assert told
        assert [r.session_epoch for _, _, r in brokers.fetches].count(0) == 2

    play(story)


def test_without_sessions() -> None:
    """Where they are switched off, every fetch names everything."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(5)
        assert await read(reader, 5) == list(range(5))

    brokers = play(story, enable_incremental_fetch_sessions=False)
    assert {request.session_epoch for _, _, request in brokers.fetches} == {-1}


def test_old_brokers() -> None:
    """Versions without sessions, topic ids and epochs are spoken, too."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.session_id = 0
        brokers.append(5)
        assert await read(reader, 5) == list(range(5))

    brokers = play(story, versions={FetchRequest: (0, 4), OffsetForLeaderEpochRequest: (0, 0)})
    assert {version for _, version, _ in brokers.fetches} == {4}


def test_a_cut_connection() -> None:
    """A fetch that is not answered is repeated: no record is lost, none comes twice."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(12)
        cuts = [3, 6, 6]

        def answer(node: int, request: FetchRequest, version: int) -> Any:
            if cuts and request.topics and request.topics[0].partitions[0].fetch_offset == cuts[0]:
                cuts.pop(0)
                return CLOSE
            return NotImplemented

        brokers.answer = answer
        assert await read(reader, 12) == list(range(12))
        assert not cuts

    play(story)


def test_a_leader_that_moved() -> None:
    """After a refusal the new leader is found by metadata, and reading goes on there."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(4)
        assert await read(reader, 1) == [0]
        brokers.leader, brokers.epoch = 1, 1
        brokers.epoch_end = (0, 4)
        brokers.append(4)
        reader.seek(P, 2)
        assert await read(reader, 6) == [2, 3, 4, 5, 6, 7]

    brokers = play(story, nodes=2)
    assert {node for node, _, _ in brokers.fetches} == {0, 1}


def test_a_leader_told_by_the_answer() -> None:
    """With the new leader in the refusal, no metadata is asked for (KIP-951)."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(4)
        hint = LeaderIdAndEpoch(leader_id=1, leader_epoch=5)

        def answer(node: int, request: FetchRequest, version: int) -> Any:
            if node == 0:
                return brokers.refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint)
            return brokers.data(records=b"".join(brokers.log)) if request.topics else None

        brokers.answer = answer
        assert await read(reader, 4) == [0, 1, 2, 3]
        assert [node for node, _, _ in brokers.fetches[:2]] == [0, 1]

    play(story, nodes=2)


def test_the_nearest_replica() -> None:
    """The leader names a replica in the client's rack; it is left when it cannot serve."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(5)
        serving = True

        def answer(node: int, request: FetchRequest, version: int) -> Any:
            if not request.topics:
                return None
            offset = request.topics[0].partitions[0].fetch_offset
            if node == 0 and serving:
                assert request.rack_id == "r1"
                return brokers.data(records=b"", preferred_read_replica=1)
            if node == 1 and not serving:
                return brokers.refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
            if offset == len(brokers.log):
                return None
            return brokers.data(records=brokers.log[offset])

        brokers.answer = answer
        assert await read(reader, 3) == [0, 1, 2]
        health = reader.health()["partitions"]["t-0"]
        assert health["fetches_from"] == 1
        serving = False
        reader.seek(P, 4)
        assert await read(reader, 1) == [4]
        assert reader.health()["partitions"]["t-0"]["fetches_from"] == "leader"

    play(story, nodes=2, client_rack="r1")


def test_a_log_that_was_cut() -> None:
    """A new leader without what was read: reading goes on where both agree."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(6)
        assert await read(reader, 6) == list(range(6))
        del brokers.log[4:]
        brokers.epoch = 1
        brokers.epoch_end = (0, 4)
        brokers.append(3)
        await reader._core.client.refresh(["t"])
        assert await read(reader, 3) == [4, 5, 6]
        assert brokers.brokers[0].asked(OffsetForLeaderEpochRequest)

    play(story)


def test_a_cut_log_without_a_policy() -> None:
    """The user is told up to where the log is what was read, until it seeks."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(6)
        reader.seek(P, 0)
        assert await read(reader, 6) == list(range(6))
        del brokers.log[4:]
        brokers.epoch = 1
        brokers.epoch_end = (0, 4)
        brokers.append(3)
        await reader._core.client.refresh(["t"])
        for _ in range(2):
            with pytest.raises(LogTruncationError) as caught:
                await reader.getone()
            assert caught.value.divergent_offsets == {P: OffsetAndMetadata(4, "", 0)}
        reader.seek(P, 5)
        assert await read(reader, 2) == [5, 6]

    play(story, auto_offset_reset="none")


def test_a_leader_that_has_everything() -> None:
    """If the new leader has what was read, nothing is lost and nothing repeated."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(6)
        assert await read(reader, 4) == [0, 1, 2, 3]
        brokers.epoch = 1
        brokers.epoch_end = (0, 6)
        brokers.append(2)
        await reader._core.client.refresh(["t"])
        reader.pause(P)
        reader.resume(P)
        brokers.answer = lambda node, request, version: (
            brokers.data(records=b"".join(brokers.log[6:]))
            if request.topics and request.topics[0].partitions[0].current_leader_epoch == 1
            else NotImplemented
        )
        assert await read(reader, 2) == [4, 5]

    play(story)


def test_a_denied_topic() -> None:
    """What an ACL denies is raised, each time."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.answer = lambda *_: brokers.refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for _ in range(2):
            with pytest.raises(TopicAuthorizationFailedError, match="t-0"):
                await reader.getone()
        health = reader.health()["partitions"]["t-0"]
        assert health["doing"] == "stopped by an error, which the next poll raises"

    play(story)


def test_a_passing_error() -> None:
    """An unknown error of the broker is waited out."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(2)
        answers = [brokers.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)] * 2
        brokers.answer = lambda *_: answers.pop() if answers else NotImplemented
        assert await read(reader, 2) == [0, 1]

    play(story)


def test_damaged_records() -> None:
    """A wrong CRC is raised, with the place; the user can seek past it."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(5)
        damaged = bytearray(brokers.log[1])
        damaged[-2] ^= 1
        brokers.log[1] = bytes(damaged)
        assert await read(reader, 1) == [0]
        with pytest.raises(CorruptRecordError):
            await reader.getone()
        reader.seek(P, 2)
        assert await read(reader, 3) == [2, 3, 4]

    play(story)


def test_unchecked_records() -> None:
    """Without check.crcs damage in a value is not noticed."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(1)
        damaged = bytearray(brokers.log[0])
        damaged[-2] ^= 1
        brokers.log[0] = bytes(damaged)
        assert (await reader.getone()).value == b"1"

    play(story, check_crcs=False)


def test_a_record_that_does_not_fit() -> None:
    """Old brokers cut the first batch where the size ends: the user is told what to raise."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(1)
        brokers.answer = lambda *_: brokers.data(records=brokers.log[0][:-3])
        with pytest.raises(RecordTooLargeError, match=r"offset 0 .* max\.partition\.fetch\.bytes"):
            await reader.getone()

    play(story)


def test_committed_records_alone() -> None:
    """Readers of committed records see nothing of aborted transactions, and no markers."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        def transactional(offset: int, producer: int) -> None:
            brokers.append(1, producer_id=producer, producer_epoch=0, transactional=True)

        def ended(kind: ControlType, producer: int) -> None:
            marker = build_control_batch(
                kind,
                producer_id=producer,
                producer_epoch=0,
                coordinator_epoch=0,
                now_ms=0,
                base_offset=len(brokers.log),
            )
            brokers.log.append(bytes(marker))

        transactional(0, 1)
        transactional(1, 2)
        ended(ControlType.ABORT, 1)
        ended(ControlType.COMMIT, 2)
        brokers.append(1)
        aborted = [AbortedTransaction(producer_id=1, first_offset=0)]

        def answer(node: int, request: FetchRequest, version: int) -> Any:
            assert request.isolation_level == 1
            if request.topics and request.topics[0].partitions[0].fetch_offset == 0:
                return brokers.data(records=b"".join(brokers.log), aborted_transactions=aborted)
            return None

        brokers.answer = answer
        assert await read(reader, 2) == [1, 4]
        assert await reader.position(P) == 5
        assert reader.last_stable_offset(P) == 5

    play(story, isolation_level="read_committed")


def test_a_topic_that_is_not_there_yet() -> None:
    """The consumer waits for the leader, says so, and reads when it has come."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(2)
        brokers.topic_error = ErrorCode.LEADER_NOT_AVAILABLE
        await reader._core.client.refresh(["t"])
        reader.seek(P, 0)
        assert await reader.getmany(timeout_ms=50) == {}
        health = reader.health()["partitions"]["t-0"]
        assert health["doing"] == "waiting for a leader"
        assert health["leaderless_ms"] >= 0
        brokers.topic_error = ErrorCode.NONE
        assert await read(reader, 2) == [0, 1]

    play(story)


def test_options_of_a_fetch() -> None:
    """What the user set is what brokers are asked for."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(1)
        await reader.getone()

    brokers = play(
        story,
        fetch_min_bytes=5,
        fetch_max_bytes=1000,
        fetch_max_wait_ms=70,
        max_partition_fetch_bytes=300,
    )
    request = brokers.fetches[0][2]
    assert (request.min_bytes, request.max_bytes, request.max_wait_ms) == (5, 1000, 70)
    assert request.topics[0].partitions[0].partition_max_bytes == 300


def test_a_position_is_asked_for_once_while_the_user_does_not_poll() -> None:
    """It lies on the buffer until then; leaders are not asked for it again and again."""

    async def story(brokers: Scripted, reader: AIOKafkaConsumer) -> None:
        brokers.append(2)
        assert await read(reader, 2) == [0, 1]
        before = len(brokers.brokers[0].asked(ListOffsetsRequest))
        reader._core.reset([P], ResetPolicy.EARLIEST)
        await asyncio.sleep(2)
        assert len(brokers.brokers[0].asked(ListOffsetsRequest)) == before + 1
        assert await read(reader, 2) == [0, 1]

    play(story)

"""Fetch sessions as a machine: what is read, what is told, who is pushed out."""

from __future__ import annotations

import itertools
from typing import Any

from barnabas.broker.partitions.fetch_sessions import (
    EPOCH_MAX,
    IDLE_MS_MAX,
    LOOK_MS,
    Fetching,
    FetchSessions,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)


class Sessions:
    """Sessions under test; ids are 1, 2, 3, … and the clock is moved by hand."""

    def __init__(self, slots: int = 10) -> None:
        counter = itertools.count(1)
        self.names: dict[bytes, str] = {}
        self.now_ms = 0
        self.machine = FetchSessions(slots, lambda: next(counter))

    def ask(
        self,
        session_id: int = 0,
        epoch: int = 0,
        partitions: dict[int, int] | None = None,
        *,
        forget: tuple[int, ...] = (),
        version: int = 12,
        privileged: bool = False,
        topic: Any = "t",
    ) -> Fetching:
        wanted = [
            FetchPartition(partition=number, fetch_offset=offset)
            for number, offset in (partitions or {}).items()
        ]
        named = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
        request = FetchRequest(
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(**named, partitions=wanted)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(**named, partitions=list(forget))],
        )
        return self.machine.resolve(
            request, version, self.now_ms, self.names.get, privileged=privileged
        )


def answer(fetching: Fetching, **results: dict[str, Any]) -> list[int]:
    """Give a result for each partition (`p0=…`); return which ones the answer carries."""
    pairs = []
    for item in fetching.items:
        values = {"high_watermark": 0, "log_start_offset": 0, "records": b""}
        values.update(results.get(f"p{item.partition}", {}))
        pairs.append((item, PartitionData(partition_index=item.partition, **values)))
    return [item.partition for item, _ in fetching.select(pairs)]


def test_without_a_session_everything_is_told() -> None:
    sessions = Sessions()
    for _ in range(2):
        fetching = sessions.ask(epoch=-1, partitions={0: 0, 1: 0})
        assert (fetching.session_id, answer(fetching)) == (0, [0, 1])
    assert len(sessions.machine) == 0


def test_changes_are_told_once() -> None:
    """Records, watermarks, errors, divergence and read replicas are changes."""
    sessions = Sessions()
    first = sessions.ask(partitions={0: 0, 1: 0})
    assert (first.session_id, answer(first)) == (1, [0, 1])
    epoch = itertools.count(1)

    def told(**result: Any) -> list[int]:
        return answer(sessions.ask(1, next(epoch)), p1=result)

    assert told() == []
    assert told(high_watermark=5) == [1]
    assert told(high_watermark=5) == []
    assert told(high_watermark=5, log_start_offset=2) == [1]
    assert told(high_watermark=5, log_start_offset=2) == []
    assert told(high_watermark=5, log_start_offset=2, records=b"x") == [1]
    assert told(high_watermark=5, log_start_offset=2, preferred_read_replica=3) == [1]
    diverging = EpochEndOffset(epoch=1, end_offset=1)
    assert told(high_watermark=5, log_start_offset=2, diverging_epoch=diverging) == [1]
    assert told(error_code=3, high_watermark=-1) == [1]
    assert told(error_code=3, high_watermark=-1) == [1]
    assert told(high_watermark=5, log_start_offset=2) == [1], "it is well again"
    assert told(high_watermark=5, log_start_offset=2) == []


def test_who_was_served_goes_to_the_end() -> None:
    """Partitions with data make room for those that had none."""
    sessions = Sessions()
    answer(sessions.ask(partitions={0: 0, 1: 0, 2: 0}))
    fetching = sessions.ask(1, 1)
    answer(fetching, p0={"records": b"x"})
    assert [item.partition for item in sessions.ask(1, 2).items] == [1, 2, 0]


def test_positions_are_kept_and_changed() -> None:
    sessions = Sessions()
    sessions.ask(partitions={0: 5, 1: 6})
    fetching = sessions.ask(1, 1, {1: 9, 2: 1}, forget=(0,))
    assert [(item.partition, item.fetch_offset) for item in fetching.items] == [(1, 9), (2, 1)]


def test_errors_leave_the_session_alone() -> None:
    sessions = Sessions()
    sessions.ask(partitions={0: 0})
    assert sessions.ask(9, 1).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.ask(1, 2).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.ask(1, 1, version=13).error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert sessions.ask(1, 1).error == ErrorCode.NONE


def test_epochs_wrap() -> None:
    """After the largest epoch comes 1: 0 would begin a new session."""
    sessions = Sessions()
    session = sessions.ask(partitions={0: 0}).session
    assert session is not None
    session.epoch = EPOCH_MAX
    assert sessions.ask(1, EPOCH_MAX).error == ErrorCode.NONE
    assert sessions.ask(1, 1).error == ErrorCode.NONE


def test_sessions_without_partitions() -> None:
    """An empty wish makes no session; one that forgot everything is closed."""
    sessions = Sessions()
    assert sessions.ask(partitions={}).session_id == 0
    sessions.ask(partitions={0: 0})
    fetching = sessions.ask(1, 1, forget=(0,))
    assert (fetching.session_id, fetching.items, len(sessions.machine)) == (0, [], 0)


def test_closing_and_renewing() -> None:
    sessions = Sessions()
    sessions.ask(partitions={0: 0})
    renewed = sessions.ask(1, 0, {0: 0})
    assert (renewed.session_id, len(sessions.machine)) == (2, 1)
    closed = sessions.ask(2, -1, {0: 0})
    assert (closed.session_id, len(closed.items), len(sessions.machine)) == (0, 1, 0)


def test_names_are_found_later() -> None:
    """A topic id that was unknown at first is looked up again."""
    sessions = Sessions()
    fetching = sessions.ask(partitions={0: 0}, version=13, topic=b"i" * 16)
    assert fetching.items[0].topic == ""
    sessions.names[b"i" * 16] = "t"
    assert sessions.ask(1, 1, version=13, topic=b"i" * 16).items[0].topic == "t"


def test_eviction() -> None:
    """The idle go first; else the larger push out the smaller, and followers push out clients."""
    sessions = Sessions(slots=2)
    assert sessions.ask(partitions={0: 0}).session_id == 1
    assert sessions.ask(partitions={0: 0, 1: 0}).session_id == 2
    assert sessions.ask(partitions={0: 0}).session_id == 0, "no smaller one to push out"
    assert sessions.ask(partitions={0: 0, 1: 0}).session_id == 3, "the smallest was 1"
    assert sessions.ask(1, 1).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    follower = sessions.ask(partitions={0: 0}, privileged=True)
    assert follower.session_id == 4
    again = sessions.ask(partitions={0: 0}, privileged=True)
    assert again.session_id == 5
    assert sessions.ask(partitions=dict.fromkeys(range(9), 0)).session_id == 0
    sessions.now_ms = IDLE_MS_MAX + 1
    assert sessions.ask(5, 1).error == ErrorCode.NONE
    late = sessions.ask(partitions={0: 0})
    assert late.session_id == 6, "4 was idle too long"
    assert sessions.ask(4, 1).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_no_slots() -> None:
    sessions = Sessions(slots=0)
    assert sessions.ask(partitions={0: 0}).session_id == 0


def test_ids_are_never_zero_nor_taken() -> None:
    drawn = iter([0, 7, 7, 0, 8])
    machine = FetchSessions(5, lambda: next(drawn))
    request = FetchRequest(
        session_epoch=0, topics=[FetchTopic(topic="t", partitions=[FetchPartition()])]
    )
    ids = [machine.resolve(request, 12, 0, lambda _: None).session_id for _ in range(2)]
    assert ids == [7, 8]


def rest(fetching: Fetching) -> list[int]:
    """Find nothing that is not told yet; return what was looked at."""
    looked = list(fetching.items)
    for item in looked:
        item.at_rest = True
    answer(fetching)
    return [item.partition for item in looked]


def test_partitions_at_rest_are_not_looked_at() -> None:
    """Until something happens to them, their reader moves, or a while has passed."""
    sessions = Sessions()
    assert rest(sessions.ask(partitions={0: 0, 1: 0, 2: 0})) == [0, 1, 2]
    epoch = itertools.count(1)
    assert rest(sessions.ask(1, next(epoch))) == []
    (session,) = sessions.machine.touched(("t", 1))
    assert session.session_id == 1
    fetching = sessions.ask(1, next(epoch), {2: 9})
    assert [item.partition for item in fetching.items] == [1, 2]
    sessions.machine.touched(("t", 0))
    assert rest(fetching) == [1, 2, 0], "one that waits hears of it"
    assert rest(sessions.ask(1, next(epoch))) == []
    sessions.now_ms += LOOK_MS
    assert rest(sessions.ask(1, next(epoch))) == [0, 1, 2]
    assert sessions.machine.touched(("other", 0)) == ()


def test_who_reads_no_more_is_not_told() -> None:
    """Neither of what was forgotten, nor in a session that is closed or was pushed out."""
    sessions = Sessions(slots=1)
    sessions.ask(partitions={0: 0, 1: 0})
    sessions.ask(1, 1, forget=(0,))
    assert sessions.machine.touched(("t", 0)) == ()
    assert len(list(sessions.machine.touched(("t", 1)))) == 1
    sessions.ask(partitions={0: 0, 1: 0}, privileged=True)
    assert [each.session_id for each in sessions.machine.touched(("t", 1))] == [2]
    sessions.ask(2, -1, {0: 0})
    assert sessions.machine.touched(("t", 1)) == ()


def test_a_topic_whose_name_is_found_later_is_heard_of() -> None:
    sessions = Sessions()
    sessions.ask(partitions={0: 0}, version=13, topic=b"i" * 16)
    sessions.names[b"i" * 16] = "t"
    assert rest(sessions.ask(1, 1, version=13, topic=b"i" * 16)) == [0]
    assert len(list(sessions.machine.touched(("t", 0)))) == 1
    assert rest(sessions.ask(1, 2, version=13, topic=b"i" * 16)) == [0]


def test_a_topic_that_takes_the_place_of_another_is_watched() -> None:
    """A re-created topic has the old name and a new id: the old id is forgotten, not the place."""
    sessions = Sessions()
    old, new = b"o" * 16, b"n" * 16
    sessions.names = {old: "t", new: "t"}
    answer(sessions.ask(partitions={0: 0}, version=13, topic=old))
    request = FetchRequest(
        session_id=1,
        session_epoch=1,
        topics=[FetchTopic(topic_id=new, partitions=[FetchPartition(partition=0)])],
        forgotten_topics_data=[ForgottenTopic(topic_id=old, partitions=[0])],
    )
    fetching = sessions.machine.resolve(request, 13, 0, sessions.names.get)
    assert [session.session_id for session in sessions.machine.touched(("t", 0))] == [1]
    assert [item.topic_id for item in fetching.items] == [new]


def test_the_readers_of_partitions_are_their_sessions() -> None:
    sessions = Sessions()
    sessions.ask(partitions={0: 0, 1: 0})
    sessions.ask(partitions={1: 0, 2: 0})
    readers = sessions.machine.readers_of
    assert readers([("t", 0)]) == {1}
    assert readers([("t", 1), ("t", 2)]) == {1, 2}
    assert readers([("t", 3), ("u", 0)]) == set()
    sessions.ask(1, 1, forget=(0,))
    assert readers([("t", 0)]) == set()

"""Fetch sessions: full at first, changes after that, full again when track was lost."""

from __future__ import annotations

from barnabas.consumer.fetch_session import FetchSession, Plan, Wanted
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OK = ErrorCode.NONE


def want(partition: TopicPartition, offset: int = 0, topic_id: bytes = b"i" * 16) -> Wanted:
    return Wanted(partition, topic_id, offset, 0)


def wanted(*wants: Wanted) -> dict[TopicPartition, Wanted]:
    return {each.partition: each for each in wants}


def begun(*wants: Wanted) -> FetchSession:
    session = FetchSession()
    session.answered(session.plan(wanted(*wants)), OK, 77)
    return session


def test_the_first_fetch_names_everything() -> None:
    """Session 0 with epoch 0 asks for a new session."""
    session = FetchSession()
    assert session.plan(wanted(want(A0), want(B0))) == Plan(0, 0, [want(A0), want(B0)], [])


def test_later_fetches_name_what_changed() -> None:
    """Unchanged partitions are not named; moved and new ones are; missing ones are forgotten."""
    session = begun(want(A0), want(A1), want(B0))
    plan = session.plan(wanted(want(A0), want(A1, 5), want(TopicPartition("c", 0))))
    assert plan == Plan(77, 1, [want(A1, 5), want(TopicPartition("c", 0))], [want(B0)])
    session.answered(plan, OK, 77)
    assert session.plan(wanted(want(A0), want(A1, 5))) == Plan(
        77, 2, [], [want(TopicPartition("c", 0))]
    )
    assert set(session.partitions) == {A0, A1}


def test_a_topic_that_was_created_anew() -> None:
    """Under a new id the old partition is forgotten and the new one named."""
    session = begun(want(A0))
    new = want(A0, topic_id=b"j" * 16)
    assert session.plan(wanted(new)) == Plan(77, 1, [new], [want(A0)])


def test_a_broker_without_room() -> None:
    """With session id 0 in the answer every fetch is full."""
    session = FetchSession()
    session.answered(session.plan(wanted(want(A0))), OK, 0)
    assert session.plan(wanted(want(A0))) == Plan(0, 0, [want(A0)], [])


def test_a_forgotten_session() -> None:
    """When the broker does not know the session, a new one is asked for."""
    session = begun(want(A0))
    plan = session.plan(wanted(want(A0)))
    session.answered(plan, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.plan(wanted(want(A0))) == Plan(0, 0, [want(A0)], [])


def test_lost_track() -> None:
    """After a wrong epoch or a lost answer, the next fetch closes the session and is full."""
    session = begun(want(A0))
    session.answered(session.plan(wanted(want(A0))), ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert session.plan(wanted(want(A0))) == Plan(77, 0, [want(A0)], [])
    session = begun(want(A0))
    session.failed()
    assert session.plan(wanted(want(A0))) == Plan(77, 0, [want(A0)], [])


def test_names_and_ids_do_not_mix() -> None:
    """When topics without an id come in, the session begins anew."""
    session = begun(want(A0))
    assert session.plan(wanted(want(A0)), by_id=False).is_full
    assert session.plan(wanted(want(A0)), by_id=True).is_full


def test_the_end_of_a_session() -> None:
    """The last fetch names the session alone; what comes after it begins another."""
    session = begun(want(A0))
    session.answered(session.plan(wanted(want(A0, 3))), OK, 77)
    assert session.end() == Plan(77, -1, [], [])
    assert session.end() is None
    assert session.plan(wanted(want(A0, 3))) == Plan(0, 0, [want(A0, 3)], [])


def test_nothing_to_end() -> None:
    """A session that was not opened, is forgotten or is not wanted has no last fetch."""
    session = FetchSession()
    session.plan(wanted(want(A0)))
    assert session.end() is None
    session = begun(want(A0))
    session.answered(session.plan(wanted(want(A0))), ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.end() is None
    session = FetchSession(enabled=False)
    session.answered(session.plan(wanted(want(A0))), OK, 0)
    assert session.end() is None


def test_epochs_wrap() -> None:
    """After the largest epoch comes 1: 0 has a meaning of its own."""
    session = begun(want(A0))
    session._epoch = 2**31 - 1
    plan = session.plan(wanted(want(A0)))
    assert plan.epoch == 2**31 - 1
    session.answered(plan, OK, 77)
    assert session.plan(wanted(want(A0))).epoch == 1


def test_without_sessions() -> None:
    """Where sessions are switched off, every fetch is full and asks for none."""
    session = FetchSession(enabled=False)
    session.answered(session.plan(wanted(want(A0))), OK, 0)
    assert session.plan(wanted(want(A0))) == Plan(0, -1, [want(A0)], [])

"""A follower's session: all once, then only what changed, and all again after a break."""

from __future__ import annotations

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.follower_fetch import Wanted
from barnabas.replication.follower_fetch_session import EPOCH_MAX, Asked, FollowerFetchSession

OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def wanted(partition: int, offset: int = 0, topic_id: Uuid = OLD) -> Wanted:
    return Wanted(TopicPartition("t", partition), topic_id, 3, offset, 3, 0)


def ask(session: FollowerFetchSession, all_wanted: list[Wanted]) -> Asked:
    """Ask for exactly these."""
    keys = {each.key: each for each in all_wanted}
    for key in {**session._wanted, **keys}:
        session.want(key, keys.get(key))
    return session.ask()


def test_the_first_request_names_everything_and_the_next_only_what_changed() -> None:
    session = FollowerFetchSession()
    both = [wanted(0), wanted(1)]
    assert ask(session, both) == (0, 0, both, ())
    session.answered(77)
    assert ask(session, [wanted(0), wanted(1, 5)]) == (77, 1, [wanted(1, 5)], [])
    session.answered(77)
    assert ask(session, [wanted(0), wanted(1, 5)]) == (77, 2, [], [])


def test_what_is_held_is_forgotten_and_named_again_later() -> None:
    session = FollowerFetchSession()
    ask(session, [wanted(0), wanted(1)])
    session.answered(77)
    assert ask(session, [wanted(1)]).forgotten == [wanted(0)]
    session.answered(77)
    assert ask(session, [wanted(0), wanted(1)]) == (77, 2, [wanted(0)], [])


def test_a_topic_made_anew_replaces_the_old_one() -> None:
    session = FollowerFetchSession()
    ask(session, [wanted(0)])
    session.answered(77)
    again = wanted(0, topic_id=NEW)
    assert ask(session, [again]) == (77, 1, [again], [wanted(0)])


def test_after_a_break_everything_is_named_again() -> None:
    session = FollowerFetchSession()
    ask(session, [wanted(0)])
    session.answered(77)
    session.end()
    assert ask(session, [wanted(0)]) == (0, 0, [wanted(0)], ())


def test_a_leader_without_room_keeps_no_session() -> None:
    session = FollowerFetchSession()
    for _ in range(3):
        assert ask(session, [wanted(0)]) == (0, 0, [wanted(0)], ())
        session.answered(0)


def test_the_count_goes_round() -> None:
    session = FollowerFetchSession()
    ask(session, [wanted(0)])
    session.answered(77)
    session._epoch = EPOCH_MAX
    session.answered(77)
    assert ask(session, [wanted(0)]).epoch == 1


def test_a_change_that_is_taken_back_is_not_told() -> None:
    session = FollowerFetchSession()
    ask(session, [wanted(0), wanted(1)])
    session.answered(77)
    session.want(wanted(0).key, None)
    session.want(wanted(0).key, wanted(0))
    assert session.ask() == (77, 1, [], [])
    assert not session.is_empty

"""A broker's standing: when it is in doubt, whom it believes, and when it must be silent."""

from __future__ import annotations

import math

import pytest

from barnabas.replication.standing import (
    ASK_EVERY_MS,
    ASK_FROM,
    IN_CONTACT,
    LEASE,
    TRUST_MS,
    Answer,
    Standing,
)

T = 10_000
LEASE_ENDS = T * LEASE
ALL = (1, 2, 3)


def standing(at_ms: float = 0) -> Standing:
    """Return that of broker 1, registered in a session that was alive at a time."""
    made = Standing(1)
    made.registered(at_ms, T)
    return made


def speaks(
    asked: Standing, now_ms: float, brokers: tuple[int, ...] = ALL, fenced: str | None = None
) -> bool:
    return asked.verdict(now_ms, brokers, 5, fenced).speaks


def away(asked_ms: float) -> Answer:
    return Answer(asked_ms, is_member=True, in_contact=False, controller_epoch=5)


def test_the_shares_of_a_timeout_leave_room_for_each_other() -> None:
    """Whoever loses the service with others must find them out of contact when its lease ends."""
    heartbeat = 1 / 6
    assert heartbeat < ASK_FROM < LEASE < 1
    assert LEASE - heartbeat > IN_CONTACT > heartbeat
    assert ASK_EVERY_MS < TRUST_MS


def test_a_lease_is_counted_from_the_request_that_was_answered() -> None:
    mine = standing()
    assert mine.asks_from_ms == T / 2
    assert speaks(mine, LEASE_ENDS - 1)
    assert not speaks(mine, LEASE_ENDS)
    assert mine.verdict(1, ALL, 5, None).until_ms == LEASE_ENDS
    assert mine.was_alive(4_000, T)
    assert not mine.was_alive(3_000, T), "an answer that was overtaken"
    assert mine.lease_ends_ms == 4_000 + LEASE_ENDS
    assert speaks(mine, 4_000 + LEASE_ENDS - 1)


def test_it_is_silent_when_it_reaches_less_than_a_majority() -> None:
    mine = standing()
    told = mine.verdict(LEASE_ENDS, ALL, 5, None)
    assert (told.speaks, told.reason) == (False, "it reaches only 1 of 3 brokers, itself included")
    mine.answered(2, away(LEASE_ENDS - 200))
    assert speaks(mine, LEASE_ENDS)
    five = (1, 2, 3, 4, 5)
    assert not speaks(mine, LEASE_ENDS, five)
    mine.answered(4, away(LEASE_ENDS - 100))
    assert speaks(mine, LEASE_ENDS, five)
    assert not speaks(mine, LEASE_ENDS, (1, 2, 3, 5)), "broker 4 is not one that it knows"


def test_of_two_brokers_both_are_a_majority() -> None:
    mine = standing()
    assert not speaks(mine, LEASE_ENDS, (1, 2))
    mine.answered(2, away(LEASE_ENDS))
    assert speaks(mine, LEASE_ENDS, (1, 2))


def test_it_is_never_silent_alone() -> None:
    mine = standing()
    assert mine.verdict(10 * T, (1,), 5, None).until_ms == math.inf
    assert speaks(mine, 10 * T, ())
    mine.session_ended()
    assert speaks(mine, 10 * T, (1,))


def test_answers_count_for_a_while_from_when_they_were_asked() -> None:
    mine = standing()
    mine.answered(2, away(LEASE_ENDS))
    mine.answered(3, away(LEASE_ENDS + 300))
    told = mine.verdict(LEASE_ENDS + 400, ALL, 5, None)
    assert (told.speaks, told.until_ms) == (True, LEASE_ENDS + 300 + TRUST_MS)
    assert not speaks(mine, told.until_ms)
    mine.answered(3, away(LEASE_ENDS + 200))
    assert not speaks(mine, told.until_ms), "an older answer that comes later changes nothing"


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        (Answer(8_500, True, False, 6), "broker 2 knows controller epoch 6, not 5"),
        (Answer(8_500, False, False, 5), "broker 2 does not count it as a member of the cluster"),
        (Answer(8_500, False), "broker 2 does not count it as a member of the cluster"),
        (Answer(8_500, True, True, 5), "broker 2 is in contact with the coordination service"),
    ],
)
def test_news_of_one_broker_outweighs_what_others_say(news: Answer, reason: str) -> None:
    mine = standing()
    mine.answered(3, away(8_500))
    mine.answered(2, news)
    assert speaks(mine, LEASE_ENDS - 1), "until the lease has ended, nobody can have been elected"
    told = mine.verdict(LEASE_ENDS, ALL, 5, None)
    assert (told.speaks, told.reason) == (False, reason)


def test_news_of_an_election_is_not_forgotten_when_its_bearer_falls_silent() -> None:
    mine = standing()
    mine.answered(2, Answer(8_500, False, False, 5))
    mine.answered(3, away(LEASE_ENDS + 10_000))
    assert not speaks(mine, LEASE_ENDS + 10_000)


def test_a_newer_leader_epoch_is_news() -> None:
    mine = standing()
    mine.answered(2, away(8_800))
    assert speaks(mine, LEASE_ENDS - 1, fenced="t-0")
    told = mine.verdict(LEASE_ENDS, ALL, 5, "t-0")
    assert (told.speaks, told.reason) == (
        False,
        "another broker knows a newer leader epoch of t-0",
    )


def test_others_that_come_back_into_contact_are_waited_with() -> None:
    """When the service is back, one hears of it before the other."""
    mine = standing()
    mine.answered(2, away(LEASE_ENDS))
    mine.answered(2, Answer(LEASE_ENDS + 200, True, True, 5))
    assert speaks(mine, LEASE_ENDS + 300)
    assert not speaks(mine, LEASE_ENDS + TRUST_MS)


def test_a_broker_that_cannot_say_whether_it_is_in_contact_counts_as_reached() -> None:
    """Apache Kafka's: they tell whether it is a member, and which epochs they know."""
    mine = standing()
    mine.answered(2, Answer(LEASE_ENDS, is_member=True))
    assert speaks(mine, LEASE_ENDS)


def test_contact_ends_all_doubt_and_answers_of_before_are_void() -> None:
    mine = standing()
    mine.answered(2, Answer(8_500, False, True, 6))
    assert not speaks(mine, LEASE_ENDS)
    assert mine.was_alive(9_100, T)
    assert speaks(mine, LEASE_ENDS + 200)
    assert not speaks(mine, 9_100 + LEASE_ENDS)
    mine.answered(2, away(9_000))
    assert not speaks(mine, 9_100 + LEASE_ENDS), "asked before the session was alive"


def test_a_request_that_is_answered_late_voids_no_newer_answer() -> None:
    mine = standing()
    mine.answered(2, away(LEASE_ENDS))
    assert mine.was_alive(100, T)
    assert speaks(mine, LEASE_ENDS + 200)


def test_after_the_end_of_its_session_only_a_new_registration_helps() -> None:
    mine = standing()
    mine.answered(2, away(10))
    mine.session_ended()
    assert mine.asks_from_ms == math.inf, "nobody could say anything of interest"
    assert not speaks(mine, 20)
    assert not mine.was_alive(30, T), "an answer to the session before"
    assert not speaks(mine, 40)
    mine.registered(50, T)
    assert speaks(mine, 60)

"""Sessions: their ends, and how many there are."""

from __future__ import annotations

from typing import Any, cast

from barnabas.console import session as module
from barnabas.console.door import Visitor
from barnabas.console.session import ABSOLUTE_S, IDLE_S, Sessions

ALICE, BOB = Visitor("User:alice", "h"), Visitor("User:bob:x", "h")


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def sessions() -> tuple[Clock, Sessions]:
    clock = Clock()
    return clock, Sessions(clock, lambda visitor: cast(Any, object()))


def test_a_session_is_found_by_its_key_alone() -> None:
    _, all_of_them = sessions()
    session = all_of_them.begin(ALICE)
    assert all_of_them.find(session.key) is session
    assert all_of_them.find(session.token) is None
    assert all_of_them.find("") is None
    assert len(session.key) >= 43
    assert session.key != session.token
    assert session.accepts(session.token)
    assert not session.accepts(session.key)
    assert not session.accepts("")
    assert not session.accepts("é")
    assert (ALICE.name, BOB.name) == ("alice", "bob:x")


def test_it_ends_unused_and_in_any_case() -> None:
    clock, all_of_them = sessions()
    session = all_of_them.begin(ALICE)
    clock.now_s = IDLE_S
    assert all_of_them.find(session.key) is session
    clock.now_s = 2 * IDLE_S + 1
    assert all_of_them.find(session.key) is None
    assert len(all_of_them) == 0
    session = all_of_them.begin(ALICE)
    began_s = clock.now_s
    while clock.now_s - began_s <= ABSOLUTE_S - IDLE_S:
        clock.now_s += IDLE_S
        assert all_of_them.find(session.key) is session
    clock.now_s = began_s + ABSOLUTE_S + 1
    assert all_of_them.find(session.key) is None


def test_a_user_has_a_limited_number_and_the_least_used_goes(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "SESSIONS_PER_USER_MAX", 2)
    clock, all_of_them = sessions()
    first, second = all_of_them.begin(ALICE), all_of_them.begin(ALICE)
    other = all_of_them.begin(BOB)
    clock.now_s = 1.0
    all_of_them.find(first.key)
    third = all_of_them.begin(ALICE)
    assert [all_of_them.find(each.key) is not None for each in (first, second, third, other)] == [
        True, False, True, True,
    ]  # fmt: skip


def test_there_is_a_limit_in_all(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "SESSIONS_MAX", 3)
    _, all_of_them = sessions()
    for number in range(10):
        all_of_them.begin(Visitor(f"User:{number}", "h"))
    assert len(all_of_them) == 3

"""The parts of an answer are put together in the order in which they were asked for."""

from __future__ import annotations

from typing import Any

from barnabas.broker.coordinators.joined_replies import JoinedReply


class Asked:
    """Takes the place of a request."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answer(self, response: Any) -> None:
        self.answers.append(response)


def test_the_last_part_sends_the_answer() -> None:
    asked = Asked()
    joined = JoinedReply[str](asked, 3, tuple)  # type: ignore[arg-type]
    parts = [joined.part(number) for number in range(3)]
    parts[2].answer("c")
    joined.put(0, "a")
    assert asked.answers == []
    parts[1].answer("b")
    assert asked.answers == [("a", "b", "c")]


def test_an_answer_without_parts_is_sent_at_once() -> None:
    asked = Asked()
    JoinedReply[str](asked, 0, tuple)  # type: ignore[arg-type]
    assert asked.answers == [()]

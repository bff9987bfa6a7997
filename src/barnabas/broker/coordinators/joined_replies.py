"""An answer whose parts come from several coordinators, in any order and some of them later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.broker.network.request import Request
from barnabas.wire.schema import Message

Part = TypeVar("Part")


class JoinedReply(Generic[Part]):
    """Sends the answer with its last part; the parts are in the order in which they were asked."""

    def __init__(
        self, request: Request[Any], count: int, respond: Callable[[list[Part]], Message]
    ) -> None:
        self._request = request
        self._respond = respond
        self._parts: dict[int, Part] = {}
        self._count = count
        if not count:
            request.answer(respond([]))

    def part(self, number: int) -> ReplyPart[Part]:
        """Return where a part belongs; it takes the place of a request as a reply's token."""
        return ReplyPart(self, number)

    def put(self, number: int, part: Part) -> None:
        """Take a part; the last one sends the answer."""
        assert number not in self._parts, "a part of an answer comes once"
        self._parts[number] = part
        if len(self._parts) == self._count:
            self._request.answer(self._respond([self._parts[key] for key in range(self._count)]))


class ReplyPart(Generic[Part]):
    """One part of an answer, still to come."""

    def __init__(self, joined: JoinedReply[Part], number: int) -> None:
        self._joined = joined
        self._number = number

    def answer(self, part: Part) -> None:
        """Give the part."""
        self._joined.put(self._number, part)

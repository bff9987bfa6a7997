"""A response whose parts are from several coordinators, in any order and some of them later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.broker.network.request import Request
from barnabas.wire.schema import Message

Part = TypeVar("Part")


class JoinedReply(Generic[Part]):
    """Sends the response with its last part; parts are in the order of the request."""

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
        """Return a part of the response, used instead of the request as a reply's token."""
        return ReplyPart(self, number)

    def put(self, number: int, part: Part) -> None:
        """Add a part; the last one sends the response."""
        assert number not in self._parts, "a part must be answered once"
        self._parts[number] = part
        if len(self._parts) == self._count:
            self._request.answer(self._respond([self._parts[key] for key in range(self._count)]))


class ReplyPart(Generic[Part]):
    """One pending part of a response."""

    def __init__(self, joined: JoinedReply[Part], number: int) -> None:
        self._joined = joined
        self._number = number

    def answer(self, part: Part) -> None:
        """Add the part to the response."""
        self._joined.put(self._number, part)

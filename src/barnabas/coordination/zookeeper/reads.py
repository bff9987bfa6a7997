"""Reading many nodes in one request: ZooKeeper's multi-read, which kazoo does not have.

    request   { type=4, done=0, err=-1, path, watch=0 }…           { -1, done=1, -1 }
    answer    { type=4, done=0, err, data, stat } for a node that could be read,
              { type=-1, done=0, err, err } for one that could not …  { -1, done=1, -1 }

Unlike in a transaction, a part that fails does not affect the others. Servers before 3.6 respond
that they do not know the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.states import ZnodeStat

MULTI_READ = 22
GET_DATA = 4
FAILED = -1

_HEADER = Struct("!i?i")
_INT = Struct("!i")
_STAT = Struct("!qqqqiiiqiiq")


class ReadMany:
    """A request as kazoo sends it; the answer has (data, stat) or an exception for each path."""

    type = MULTI_READ
    watcher = None

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytearray:
        """Return the request's body."""
        body = bytearray()
        part = _HEADER.pack(GET_DATA, False, -1)
        for path in self._paths:
            name = path.encode()
            body += part
            body += _INT.pack(len(name))
            body += name
            body += b"\0"
        body += _HEADER.pack(FAILED, True, -1)
        return body

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Any]:
        """Read the answer's body, which begins at `offset`."""
        results: list[Any] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(answer, offset)
            offset += _HEADER.size
            if done:
                return results
            (number,) = _INT.unpack_from(answer, offset)
            offset += _INT.size
            if kind == FAILED:
                results.append(EXCEPTIONS[number]())
                continue
            # A node created without data has null data, of length -1.
            end = offset + max(number, 0)
            data = bytes(answer[offset:end])
            results.append((data, ZnodeStat._make(_STAT.unpack_from(answer, end))))
            offset = end + _STAT.size

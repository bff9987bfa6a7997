"""Frames: an int32 size, then that many bytes of header and body.

The size does not include itself. A size that is negative or above the reader's limit cannot be
answered: the connection is closed.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from barnabas.model.errors import LocalProtocolError
from barnabas.wire.apis import Api, api_of
from barnabas.wire.codec import decode, encode_parts, join
from barnabas.wire.header import (
    decode_response_header,
    encode_request_header,
)
from barnabas.wire.primitives import Buffer
from barnabas.wire.schema import Message

SIZE: Final = struct.Struct(">i")
SIZE_MAX: Final = 2**31 - 1 - 5
"""The largest int32, minus the longest response header."""
_SIZE_AND_HEADER: Final = struct.Struct(">ii")
_SIZE_AND_TAGGED_HEADER: Final = struct.Struct(">iib")


def request_frame(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode a whole request: size, header, body."""
    head = encode_request_header(api_of(type(message)), version, correlation_id, client_id)
    return join(_with_size(head, encode_parts(message, version)))


def response_frame(message: Message, version: int, correlation_id: int) -> bytes:
    """Encode a whole response: size, header, body."""
    return join(response_parts(message, version, correlation_id))


def response_parts(
    message: Message, version: int, correlation_id: int, parts: list[Any] | None = None
) -> list[Any]:
    """Encode a whole response to pieces in order, its records as given.

    Anything with a length may stand for records, so that a piece can be a slice of a file. The
    pieces of the body are given if they were encoded before.
    """
    if parts is None:
        parts = encode_parts(message, version)
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    if size > SIZE_MAX:
        raise LocalProtocolError(
            f"{type(message).__name__} of {size} bytes exceeds the frame limit of {SIZE_MAX}"
        )
    # The hottest frames of a broker: size and header are packed together, before the body.
    if version >= api_of(type(message)).tagged_response_from:
        head = _SIZE_AND_TAGGED_HEADER.pack(size + 5, correlation_id, 0)
    else:
        head = _SIZE_AND_HEADER.pack(size + 4, correlation_id)
    if parts and isinstance(parts[0], bytes):
        parts[0] = head + parts[0]
        return parts
    return [head, *parts]


def decode_response(entry: Api, version: int, payload: Buffer) -> tuple[int, Message]:
    """Decode the payload of a response frame to its correlation id and message."""
    correlation_id, position = decode_response_header(payload, entry, version)
    message, _ = decode(entry.response, payload, version, position)
    return correlation_id, message


def _with_size(head: bytes, parts: list[Any]) -> list[Any]:
    size = len(head) + sum(map(len, parts))
    return [SIZE.pack(size) + head, *parts]

"""Headers: between the size of a frame and the body of its message.

    request v0   api key:int16  api version:int16  correlation id:int32     (ControlledShutdown v0)
    request v1   v0, client id: nullable string with an int16 length
    request v2   v1, tagged fields; the client id keeps its int16 length
    response v0  correlation id:int32
    response v1  v0, tagged fields

Which one it is follows from the API and its version (`apis`). We send no tags, and skip those of
peers.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.model.errors import LocalProtocolError, RemoteProtocolError
from barnabas.wire.apis import API_BY_KEY, CONTROLLED_SHUTDOWN_KEY, Api
from barnabas.wire.primitives import Buffer, Malformed, long_uvarint, skip_tags

_FIXED: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">h")
_CORRELATION: Final = struct.Struct(">i")
_new_tuple: Final = tuple.__new__  # a named tuple's own constructor is a Python function


class RequestHeader(NamedTuple):
    """The header of a request; a null client id reads as the empty string."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def decode_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Read the header of a request; return it and where the body starts.

    Raises RemoteProtocolError for an unknown API key and for bytes that are not a header. The
    version may be unknown to us: the response to that depends on the API, and is up to the caller.
    """
    try:
        key, version, correlation_id = _FIXED.unpack_from(buffer, position)
        entry = API_BY_KEY.get(key)
        if entry is None:
            raise RemoteProtocolError(f"no API has the key {key}")
        position += _FIXED.size
        if key == CONTROLLED_SHUTDOWN_KEY and version == 0:
            return RequestHeader(key, version, correlation_id, ""), position
        (length,) = _LENGTH.unpack_from(buffer, position)
        position += _LENGTH.size
        client_id = ""
        if length > 0:
            end = position + length
            if end > len(buffer):
                raise Malformed(f"the client id has size {length}")
            client_id, position = str(buffer[position:end], "utf-8"), end
        elif length < -1:
            raise Malformed(f"the client id has size {length}")
        flexible_from = entry.flexible_from
        if flexible_from is not None and version >= flexible_from:
            position = _tags(buffer, position) if buffer[position] else position + 1
    except (struct.error, IndexError) as failure:
        raise RemoteProtocolError("the frame ends inside the request header") from failure
    except (Malformed, UnicodeDecodeError) as failure:
        raise RemoteProtocolError(f"the request header cannot be read: {failure}") from failure
    return _new_tuple(RequestHeader, (key, version, correlation_id, client_id)), position


def encode_request_header(
    entry: Api, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Write the header of a request."""
    header_version = entry.request_header_version(version)
    head = _FIXED.pack(entry.key, version, correlation_id)
    if header_version == 0:
        return head
    if client_id is None:
        head += b"\xff\xff"
    else:
        text = client_id.encode()
        if len(text) > 32767:
            raise LocalProtocolError(f"a client id has at most 32767 bytes, not {len(text)}")
        head += _LENGTH.pack(len(text)) + text
    return head + b"\x00" if header_version > 1 else head


def decode_response_header(
    buffer: Buffer, entry: Api, version: int, position: int = 0
) -> tuple[int, int]:
    """Read the header of a response; return the correlation id and where the body starts."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(buffer, position)
        position += _CORRELATION.size
        if entry.response_header_version(version) > 0:
            position = _tags(buffer, position)
    except (struct.error, IndexError) as failure:
        raise RemoteProtocolError("the frame ends inside the response header") from failure
    except Malformed as failure:
        raise RemoteProtocolError(f"the response header cannot be read: {failure}") from failure
    return correlation_id, position


def peek_correlation_id(buffer: Buffer, position: int = 0) -> int:
    """Read the correlation id of a response, which identifies its request."""
    try:
        correlation_id: int = _CORRELATION.unpack_from(buffer, position)[0]
    except struct.error as failure:
        raise RemoteProtocolError("the frame ends inside the response header") from failure
    return correlation_id


def _tags(buffer: Buffer, position: int) -> int:
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_uvarint(buffer, position, count)
    return skip_tags(buffer, position, count) if count else position

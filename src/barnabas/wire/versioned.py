"""Messages embedded as data in others, prefixed with their version as an int16.

This is the form of the subscriptions and assignments of classic consumers and of the records of the
coordinators. A newer version than ours is read as our newest: newer versions only add fields at the
end.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.codec import decode, encode
from barnabas.wire.primitives import Buffer
from barnabas.wire.schema import Message

M = TypeVar("M", bound=Message)

_VERSION: Final = struct.Struct(">h")


def encode_versioned(message: Message, version: int) -> bytes:
    """Encode a message after its version."""
    return _VERSION.pack(version) + encode(message, version)


def decode_versioned(cls: type[M], data: Buffer) -> tuple[M, int]:
    """Decode a message after its version; return it and the version in the data."""
    if len(data) < _VERSION.size:
        raise RemoteProtocolError(f"{cls.__name__} has {len(data)} bytes and no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < cls.VERSIONS.first:
        raise RemoteProtocolError(f"{cls.__name__} has no version {version}")
    message, _ = decode(cls, data, min(version, cls.VERSIONS.last), _VERSION.size)
    return message, version

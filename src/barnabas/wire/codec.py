"""Messages to bytes and back; the one door to the compiled encoders and decoders.

    data = encode(ProduceResponse(...), 9)
    request, end = decode(FetchRequest, frame, 12, position)

Functions are compiled on the first use of a (message, version) and kept on the message class. Two
threads that meet there compile the same function twice, and one of the two is kept: no lock needed.

Bytes that break the protocol raise RemoteProtocolError; a message that the version cannot carry
raises LocalProtocolError. Both name the message, the version and the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from barnabas.model.errors import LocalProtocolError, RemoteProtocolError
from barnabas.wire.decoder import DecoderSource
from barnabas.wire.encoder import EncoderSource
from barnabas.wire.primitives import Buffer, Malformed
from barnabas.wire.schema import Message

M = TypeVar("M", bound=Message)
Encode: TypeAlias = Callable[[Any, list[Any]], None]
Decode: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]

UNREADABLE: Final = (Malformed, IndexError, UnicodeDecodeError, struct.error)
UNWRITABLE: Final = (Malformed, AttributeError, TypeError, UnicodeEncodeError, struct.error)


class Encoder(NamedTuple):
    """A compiled encoder, and the field that each of its lines writes."""

    encode: Encode
    labels: list[str]


class Decoder(NamedTuple):
    """A compiled decoder, and the field that each of its lines reads."""

    decode: Decode
    labels: list[str]


def encode_parts(message: Message, version: int) -> list[Any]:
    """Encode to pieces in order, records as they were given.

    Whatever has a length may stand for records here, a slice of a file for instance; the other
    pieces are bytes.
    """
    encoder = encoder_of(type(message), version)
    parts: list[Any] = []
    try:
        encoder.encode(message, parts)
    except UNWRITABLE as failure:
        field = _label(failure.__traceback__, encoder.labels)
        raise LocalProtocolError(
            f"{type(message).__name__} v{version}: {field} cannot be written: {failure}"
        ) from failure
    return parts


def join(parts: list[Any]) -> bytes:
    """Join the pieces of an encoding; all of them must be like bytes."""
    try:
        return b"".join(parts)
    except TypeError as failure:
        raise LocalProtocolError(f"a message holds what is not like bytes: {failure}") from failure


def encode(message: Message, version: int) -> bytes:
    """Encode a message."""
    return join(encode_parts(message, version))


def encode_into(message: Message, version: int, out: bytearray) -> None:
    """Encode a message at the end of a bytearray."""
    out += encode(message, version)


def decode(cls: type[M], buffer: Buffer, version: int, position: int = 0) -> tuple[M, int]:
    """Decode a message that starts at a position; return it and the position after it.

    Records are views into the buffer. What follows the message is the caller's to judge.
    """
    decoder = decoder_of(cls, version)
    try:
        return decoder.decode(buffer, position)
    except UNREADABLE as failure:
        field = _label(failure.__traceback__, decoder.labels)
        if isinstance(failure, Malformed | UnicodeDecodeError):
            problem = f"{cls.__name__} v{version}: {field}: {failure}"
        else:
            problem = f"{cls.__name__} v{version} ends inside {field}"
        raise RemoteProtocolError(problem) from failure


def encoder_of(cls: type[Message], version: int) -> Encoder:
    """Return the encoder of a message in a version; compile it if it is new."""
    encoder: Encoder | None = cls.ENCODERS.get(version)
    if encoder is None:
        _check_version(cls, version)
        source = EncoderSource(cls, version)
        exec(compile(source.text, _COMPILED, "exec"), source.names)
        encoder = Encoder(source.names["encode"], source.labels)
        cls.ENCODERS[version] = encoder
    return encoder


def decoder_of(cls: type[Message], version: int) -> Decoder:
    """Return the decoder of a message in a version; compile it if it is new."""
    decoder: Decoder | None = cls.DECODERS.get(version)
    if decoder is None:
        _check_version(cls, version)
        source = DecoderSource(cls, version)
        exec(compile(source.text, _COMPILED, "exec"), source.names)
        decoder = Decoder(source.names["decode"], source.labels)
        cls.DECODERS[version] = decoder
    return decoder


_COMPILED: Final = "<compiled message codec>"


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise LocalProtocolError(
            f"{cls.__name__} has no version {version}; it has {first} to {last}"
        )


def _label(trace: TracebackType | None, labels: list[str]) -> str:
    """Find the field that a compiled function was at when it raised."""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _COMPILED:
            return labels[trace.tb_lineno - 1]
        trace = trace.tb_next
    raise AssertionError("the failure comes from elsewhere")

"""Messages to bytes and back; the entry point to the encoders and decoders.

    data = encode(ProduceResponse(...), 9)
    request, end = decode(FetchRequest, frame, 12, position)

Functions are compiled on the first use of a (message, version) and cached on the message class. Two
threads that race compile the same function twice, and one of the two is kept: no lock is needed.
The hottest messages also have functions in C (`native`).

Bytes that violate the protocol raise RemoteProtocolError; a message that the version cannot express
raises LocalProtocolError. Both name the message, the version and the field. The error text is
always that of the Python back end, which is run again when the C one has failed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from barnabas.model.errors import LocalProtocolError, RemoteProtocolError
from barnabas.wire.decoder import DecoderSource
from barnabas.wire.encoder import EncoderSource
from barnabas.wire.native import native_function
from barnabas.wire.primitives import Buffer, Malformed
from barnabas.wire.schema import Message

M = TypeVar("M", bound=Message)
Encode: TypeAlias = Callable[[Any, list[Any], int], None]
Decode: TypeAlias = Callable[[Buffer, int, int], tuple[Any, int]]

UNREADABLE: Final = (Malformed, IndexError, UnicodeDecodeError, struct.error)
UNWRITABLE: Final = (
    Malformed,
    AttributeError,
    TypeError,
    ValueError,
    OverflowError,
    BufferError,
    struct.error,
)


class PythonEncoder(NamedTuple):
    """An encoder of the Python back end, and the field that each of its lines writes."""

    encode: Encode
    labels: list[str]


class PythonDecoder(NamedTuple):
    """A decoder of the Python back end, and the field that each of its lines reads."""

    decode: Decode
    labels: list[str]


def encode_parts(message: Message, version: int) -> list[Any]:
    """Encode to pieces in order, long records as given.

    Anything with a length may stand for records, for instance a slice of a file; the other pieces
    are bytes.
    """
    cls = type(message)
    encode = cls.ENCODERS.get(version) or _new_encoder(cls, version)
    parts: list[Any] = []
    try:
        encode(message, parts, version)
    except UNWRITABLE as failure:
        raise LocalProtocolError(_why_unwritable(message, version)) from failure
    return parts


def join(parts: list[Any]) -> bytes:
    """Join the pieces of an encoding; all of them must be bytes-like."""
    try:
        return b"".join(parts)
    except (TypeError, BufferError) as failure:
        raise LocalProtocolError(
            f"a message contains something that is not bytes-like: {failure}"
        ) from failure


def encode(message: Message, version: int) -> bytes:
    """Encode a message."""
    return join(encode_parts(message, version))


def decode(cls: type[M], buffer: Buffer, version: int, position: int = 0) -> tuple[M, int]:
    """Decode a message that starts at a position; return it and the position after it.

    Records are views into the buffer. What follows the message is up to the caller.
    """
    decode = cls.DECODERS.get(version) or _new_decoder(cls, version)
    try:
        return decode(buffer, position, version)
    except UNREADABLE as failure:
        raise RemoteProtocolError(_why_unreadable(cls, buffer, version, position)) from failure


def python_encoder(cls: type[Message], version: int) -> PythonEncoder:
    """Return the Python back end's encoder of a message in a version."""
    encoder: PythonEncoder | None = cls.PYTHON_CODECS.get(("encode", version))
    if encoder is None:
        source = EncoderSource(cls, version)
        exec(compile(source.text, _COMPILED, "exec"), source.names)
        encoder = PythonEncoder(source.names["encode"], source.labels)
        cls.PYTHON_CODECS["encode", version] = encoder
    return encoder


def python_decoder(cls: type[Message], version: int) -> PythonDecoder:
    """Return the Python back end's decoder of a message in a version."""
    decoder: PythonDecoder | None = cls.PYTHON_CODECS.get(("decode", version))
    if decoder is None:
        source = DecoderSource(cls, version)
        exec(compile(source.text, _COMPILED, "exec"), source.names)
        decoder = PythonDecoder(source.names["decode"], source.labels)
        cls.PYTHON_CODECS["decode", version] = decoder
    return decoder


_COMPILED: Final = "<compiled message codec>"


def _new_encoder(cls: type[Message], version: int) -> Encode:
    _check_version(cls, version)
    encode = native_function("encode", cls) or python_encoder(cls, version).encode
    cls.ENCODERS[version] = encode
    return encode


def _new_decoder(cls: type[Message], version: int) -> Decode:
    _check_version(cls, version)
    decode = native_function("decode", cls) or python_decoder(cls, version).decode
    cls.DECODERS[version] = decode
    return decode


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise LocalProtocolError(
            f"{cls.__name__} has no version {version}; supported: {first} to {last}"
        )


def _why_unwritable(message: Message, version: int) -> str:
    name = f"{type(message).__name__} v{version}"
    encoder = python_encoder(type(message), version)
    try:
        encoder.encode(message, [], version)
    except UNWRITABLE as failure:
        field = _label(failure.__traceback__, encoder.labels)
        return f"{name}: {field} cannot be written: {failure}"
    raise AssertionError(f"{name} was rejected by one back end only: {message!r}")


def _why_unreadable(cls: type[Message], buffer: Buffer, version: int, position: int) -> str:
    name = f"{cls.__name__} v{version}"
    decoder = python_decoder(cls, version)
    try:
        decoder.decode(buffer, position, version)
    except UNREADABLE as failure:
        field = _label(failure.__traceback__, decoder.labels)
        if isinstance(failure, Malformed | UnicodeDecodeError):
            return f"{name}: {field}: {failure}"
        return f"{name} ends inside {field}"
    raise AssertionError(f"{name} was rejected by one back end only: {bytes(buffer).hex()}")


def _label(trace: TracebackType | None, labels: list[str]) -> str:
    """Return the field that a compiled function was processing when it raised."""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _COMPILED:
            return labels[trace.tb_lineno - 1]
        trace = trace.tb_next
    raise AssertionError("the failure was not raised by a compiled codec")

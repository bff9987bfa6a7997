"""Strings in any encoding, and UUIDs as strings, as Kafka's classes write and read them.

The encoding is UTF-8, or the value of `key.serializer.encoding`, `value.serializer.encoding` or,
for both, `serializer.encoding` (`…deserializer…` for reading). As in Java, a character that the
encoding does not have is written as "?", and invalid bytes are read as U+FFFD (for surrogates
in UTF-8, Java produces one where Python produces three). UTF-16 and UTF-32 are big-endian unless
marked otherwise, UTF-16 with a byte order mark: unlike Python's codecs of these names.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import UUID

from barnabas.model.errors import ConfigError, SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer

Encode = Callable[[str], bytes]
Decode = Callable[[bytes], str]


def _encoder(codec: str) -> Encode:
    if codec == "utf-16":
        return lambda text: codecs.BOM_UTF16_BE + _replacing(text, "utf-16-be") if text else b""
    if codec == "utf-32":
        return lambda text: _replacing(text, "utf-32-be")
    return lambda text: _replacing(text, codec)


def _decoder(codec: str) -> Decode:
    if codec == "utf-16":
        return lambda data: _marked(data, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, codec)
    if codec == "utf-32":
        return lambda data: _marked(data, codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE, codec)
    return lambda data: str(data, codec, "replace")


def _codec(name: str, option: str) -> str:
    try:
        found = codecs.lookup(name)
    except LookupError:
        raise ConfigError(f"{option}={name}: no such encoding") from None
    if not found._is_text_encoding:
        raise ConfigError(f"{option}={name}: not an encoding of strings")
    return found.name


def _replacing(text: str, codec: str) -> bytes:
    return text.encode(codec, "replace")


def _marked(data: bytes, big: bytes, little: bytes, codec: str) -> str:
    data = bytes(data)
    if data.startswith(little):
        return str(data[len(little) :], f"{codec}-le", "replace")
    return str(data.removeprefix(big), f"{codec}-be", "replace")


class _Encoding:
    """The common part: the encoding, from an argument or the client's options."""

    kind: ClassVar[str]

    def __init__(self, encoding: str = "UTF-8") -> None:
        self._use(encoding, "encoding")

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Take the encoding from the client's options, if they have one."""
        for option in (
            f"{'key' if is_key else 'value'}.{self.kind}.encoding",
            f"{self.kind}.encoding",
        ):
            given = configs.get(option)
            if given:
                self._use(str(given), option)
                return

    def _use(self, encoding: str, option: str) -> None:
        codec = _codec(encoding, option)
        self.encoding = encoding
        self._encode = _encoder(codec)
        self._decode = _decoder(codec)


class StringSerializer(_Encoding, Serializer):
    """Strings to bytes: `StringSerializer()` in UTF-8, `StringSerializer("ISO-8859-1")`."""

    kind = "serializer"

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, str):
            raise SerializationError(f"StringSerializer got {type(data).__name__}: must be a str")
        return self._encode(data)


class StringDeserializer(_Encoding, Deserializer):
    """Bytes to strings."""

    kind = "deserializer"

    def deserialize(self, topic: str, headers: Headers, data: Any) -> str | None:
        return None if data is None else self._decode(data)


class UUIDSerializer(_Encoding, Serializer):
    """A `uuid.UUID` as its 36 characters."""

    kind = "serializer"

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, UUID):
            raise SerializationError(f"UUIDSerializer got {type(data).__name__}: must be a UUID")
        return self._encode(str(data))


_UUID = re.compile("-".join(["([0-9a-fA-F]+)"] * 5))
_UUID_BITS = (32, 16, 16, 16, 48)


class UUIDDeserializer(_Encoding, Deserializer):
    """A `uuid.UUID` from its characters; as in Java, a part may have fewer digits."""

    kind = "deserializer"

    def deserialize(self, topic: str, headers: Headers, data: Any) -> UUID | None:
        if data is None:
            return None
        text = self._decode(data)
        parts = _UUID.fullmatch(text)
        if parts is None or len(text) > 36:
            raise SerializationError(f"Error parsing data into UUID: {text[:100]!r}")
        number = 0
        for bits, part in zip(_UUID_BITS, parts.groups(), strict=True):
            number = number << bits | int(part, 16) & ((1 << bits) - 1)
        return UUID(int=number)

"""Keys and values as something to read: what they probably are, or what the user says.

The choice is given with its reason, and nothing that bytes contain can raise, hang, or grow beyond
its limits: decoders check sizes, depths and counts, and take time linear in what they are given.
"""

from __future__ import annotations

import base64
import struct
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.records.avro_document import AvroSchema
from barnabas.console.records.binary_json import NotBinaryJsonError, read_cbor, read_message_pack
from barnabas.console.records.display import cut_utf8
from barnabas.console.records.filter_evaluation import MISSING
from barnabas.console.records.internal_topics import TOPICS, read_internal
from barnabas.console.records.json_text import (
    DOCUMENT_MAX,
    NotJsonError,
    indent_json,
    parse_json,
    write_json,
)
from barnabas.console.records.raw_protobuf import NotProtobufError, read_message
from barnabas.console.records.schemas import (
    NO_SCHEMAS,
    Schema,
    SchemaError,
    TopicSchemas,
    read_with,
)
from barnabas.model.errors import SerializationError
from barnabas.serialization.framing import read_indexes, unframe

AUTO: Final = "auto"
DECODERS: Final = {
    AUTO: "automatic",
    "json": "JSON",
    "text": "text (UTF-8)",
    "hex": "hexadecimal",
    "base64": "base64",
    "int": "whole number, signed",
    "uint": "whole number, unsigned",
    "float": "floating point",
    "uuid": "UUID",
    "avro": "Avro",
    "protobuf": "Protobuf",
    "msgpack": "MessagePack",
    "cbor": "CBOR",
    "internal": "Kafka's internal topics",
}
RAW: Final = frozenset({AUTO, "json", "text"})
"""Decoders that leave the text of bytes as it is, so that it can be found in them."""

DECODED_MAX: Final = 1 << 20
"""Bytes that decoders of binary formats are given; more are shown in hexadecimal digits."""

_FLOATS = {2: struct.Struct(">e"), 4: struct.Struct(">f"), 8: struct.Struct(">d")}
_CONTROLS: Final = bytes(each for each in range(32) if each not in b"\t\n\r") + b"\x7f"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A key or value, decoded."""

    kind: str
    """A name of `DECODERS`, or null, or empty."""
    text: str | None
    """What filters compare; None for null."""
    reason: str
    """Why it was decoded like this, or why it could not be."""
    document: Any = MISSING
    schema_id: int | None = None
    translated: bool = False
    """Whether the text is not in the bytes."""

    def shown(self, limit: int) -> str:
        """Return indented text of at most about `limit` bytes."""
        text = self.text or ""
        if self.kind == "json" and len(text) <= limit:
            with suppress(NotJsonError):  # nested too deep: it stays as it is
                text = indent_json(text)
        if len(text) <= limit // 4:
            return text
        # The cut is made in bytes: a page is as large as they are.
        data = text[:limit].encode(errors="surrogatepass")
        return cut_utf8(data, limit).decode(errors="surrogatepass")


_NULL: Final = Decoded("null", None, "null")
_EMPTY: Final = Decoded("empty", "", "no bytes")


class Decoder:
    """Decodes keys or values of a topic, in one way."""

    def __init__(
        self, topic: str, side: str, how: str = AUTO, schemas: TopicSchemas = NO_SCHEMAS
    ) -> None:
        if how not in DECODERS:
            raise ValueError(f"decoder {how}: must be one of {', '.join(DECODERS)}")
        self.how = how
        self._topic = topic
        self._side = side
        self._schemas = schemas
        self.keeps_text = how in RAW and topic not in TOPICS and not schemas

    def __call__(self, data: bytes | None, key: bytes | None = None) -> Decoded:
        """Return what bytes are; a value of an internal topic is read with its key."""
        if data is None:
            return _NULL
        if not data:
            return _EMPTY
        if self.how != AUTO:
            return self._as(self.how, data, key)
        return self._auto(data, key)

    def _as(self, how: str, data: bytes, key: bytes | None) -> Decoded:
        try:
            return self._decoded(how, data, key)
        except (ValueError, SerializationError, RecursionError, struct.error) as failure:
            reason = f"not {DECODERS[how]}: {str(failure)[:300]}"
            return Decoded("hex", data.hex(), reason, translated=True)

    def _decoded(self, how: str, data: bytes, key: bytes | None) -> Decoded:
        if len(data) > DECODED_MAX and how not in ("text", "hex", "base64"):
            raise ValueError(f"{len(data)} bytes: at most {DECODED_MAX} are decoded")
        match how:
            case "json":
                document = parse_json(data)
                return Decoded("json", data.decode(), "as chosen", document)
            case "text":
                text = data.decode(errors="replace")
                return Decoded("text", text, "as chosen")
            case "hex":
                return Decoded("hex", data.hex(), "as chosen", translated=True)
            case "base64":
                text = base64.b64encode(data).decode()
                return Decoded("base64", text, "as chosen", translated=True)
            case "int" | "uint":
                if len(data) > 16:
                    raise ValueError(f"{len(data)} bytes: at most 16")
                number = int.from_bytes(data, "big", signed=how == "int")
                reason = f"{len(data)} bytes, big-endian"
                return Decoded(how, str(number), reason, number, translated=True)
            case "float":
                layout = _FLOATS.get(len(data))
                if layout is None:
                    raise ValueError(f"{len(data)} bytes: must be 2, 4 or 8")
                floating = layout.unpack(data)[0]
                reason = f"{len(data)} bytes, big-endian"
                return Decoded("float", repr(floating), reason, floating, translated=True)
            case "uuid":
                if len(data) != 16:
                    raise ValueError(f"{len(data)} bytes: must be 16")
                return Decoded("uuid", str(uuid.UUID(bytes=data)), "16 bytes", translated=True)
            case "msgpack":
                return _document("msgpack", read_message_pack(data), "as chosen")
            case "cbor":
                return _document("cbor", read_cbor(data), "as chosen")
            case "internal":
                found = read_internal(self._topic, self._side, data, key)
                return _document("internal", found, f"a record of {self._topic}")
            case _:
                return self._with_schema(how, data)

    def _with_schema(self, how: str, data: bytes) -> Decoded:
        bare = self._schemas.bare(self._side)
        framed = _framed(data)
        if framed is not None:
            schema_id, payload = framed
            schema = self._schemas.by_id(schema_id)
            if schema is not None:
                return _by_schema(schema, payload, schema_id, framed=True)
            if bare is None and how == "protobuf":
                found = _raw_protobuf(payload, schema_id)
                if found is not None:
                    return found
        if bare is not None:
            return _by_schema(bare, data, None, framed=False)
        if how == "protobuf":
            reason = "without a schema: field numbers, likely types"
            return _document("protobuf", read_message(data), reason)
        if framed is not None:
            raise SchemaError(f"schema {framed[0]} has not been given")
        raise SchemaError("no schema has been given")

    def _auto(self, data: bytes, key: bytes | None) -> Decoded:
        if self._topic in TOPICS:
            return self._as("internal", data, key)
        if len(data) > DECODED_MAX:
            return _large(data)
        bare = self._schemas.bare(self._side)
        if bare is not None:
            try:
                return _by_schema(bare, data, None, framed=False)
            except ValueError:
                pass  # the topic may have others, too
        first = data[0]
        if first == 0:
            found = self._auto_framed(data)
            if found is not None:
                return found
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return _auto_binary(data)
        controls = len(data) - len(data.translate(None, _CONTROLS))
        if controls * 10 > len(data):
            return _auto_binary(data)
        if first in b'{["-0123456789tfn \t\r\n':
            try:
                return Decoded("json", text, "parses as JSON", parse_json(text))
            except NotJsonError:
                pass
        return Decoded("text", text, "is UTF-8, and not JSON")

    def _auto_framed(self, data: bytes) -> Decoded | None:
        framed = _framed(data)
        if framed is None:
            return None
        schema_id, payload = framed
        schema = self._schemas.by_id(schema_id)
        if schema is not None:
            try:
                return _by_schema(schema, payload, schema_id, framed=True)
            except ValueError as failure:
                reason = f"schema {schema_id} does not fit: {str(failure)[:300]}"
                return Decoded("hex", data.hex(), reason, schema_id=schema_id, translated=True)
        # Small whole numbers begin with a 0, too.
        return _raw_protobuf(payload, schema_id) if len(data) not in (8, 16) else None


def _framed(data: bytes) -> tuple[int, bytes] | None:
    try:
        return unframe(data)
    except SerializationError:
        return None


def _document(kind: str, found: Any, reason: str, schema_id: int | None = None) -> Decoded:
    return Decoded(kind, write_json(found), reason, found, schema_id, translated=True)


def _by_schema(schema: Schema, data: bytes, schema_id: int | None, *, framed: bool) -> Decoded:
    kind = "avro" if isinstance(schema, AvroSchema) else "protobuf"
    found = read_with(schema, data, framed=framed)
    number = "" if schema_id is None else f" (id {schema_id})"
    return _document(kind, found, f"schema {schema.name}{number}", schema_id)


def _raw_protobuf(payload: bytes, schema_id: int) -> Decoded | None:
    try:
        path, message = read_indexes(payload)
        if len(path) > 20 or max(path) > 1000:
            return None
        reason = f"schema id {schema_id}, which has not been given; read without its schema"
        return _document("protobuf", read_message(message), reason, schema_id)
    except (SerializationError, NotProtobufError, NotJsonError, ValueError):
        return None


def _auto_binary(data: bytes) -> Decoded:
    if data[0] & 0xE0 == 0x80 or data[0] in (0xDC, 0xDD, 0xDE, 0xDF):  # a map or an array
        try:
            return _document("msgpack", read_message_pack(data), "parses as MessagePack")
        except (NotBinaryJsonError, NotJsonError):
            pass
    if len(data) in (4, 8):
        number = int.from_bytes(data, "big", signed=True)
        reason = f"{len(data)} bytes that are not text: read as a big-endian whole number"
        return Decoded("int", str(number), reason, number, translated=True)
    if data[0] >= 8:  # the tag of field 1 at least
        try:
            reason = "parses as Protobuf: field numbers, likely types"
            return _document("protobuf", read_message(data), reason)
        except (NotProtobufError, NotJsonError):
            pass
    schema_id = None
    reason = "neither text nor a known format"
    framed = _framed(data)
    if framed is not None and framed[0] > 0 and len(data) > 5:
        schema_id = framed[0]
        reason = f"begins like a frame of schema {schema_id}, which has not been given"
    return Decoded("hex", data.hex(), reason, schema_id=schema_id, translated=True)


def _large(data: bytes) -> Decoded:
    reason = f"{len(data)} bytes: at most {DOCUMENT_MAX} are parsed"
    try:
        return Decoded("text", data.decode(), reason)
    except UnicodeDecodeError:
        return Decoded("hex", data.hex(), reason, translated=True)

"""The schemas that a user has given the console for a topic, to decode Avro and Protobuf with.

They are kept in memory with the user's session, within limits; the cluster knows nothing of them.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from typing import Any, Final

from barnabas.console.records.avro_document import (
    PRIMITIVES,
    SCHEMA_MAX,
    AvroError,
    AvroSchema,
)
from barnabas.model.errors import SerializationError
from barnabas.serialization.framing import ID_MAX, read_indexes

SCHEMAS_MAX: Final = 50
TOPICS_MAX: Final = 100


class SchemaError(ValueError):
    """A schema that cannot be used, or bytes that do not follow it."""


class ProtobufSchema:
    """A file of messages, as `protoc --include_imports -o FILE` writes it, and one of them."""

    def __init__(self, descriptors: bytes, message: str = "") -> None:
        if len(descriptors) > SCHEMA_MAX:
            raise SchemaError(f"{len(descriptors)} bytes of descriptors: at most {SCHEMA_MAX}")
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
            from google.protobuf.message import DecodeError
        except ImportError:
            raise SchemaError(
                "Protobuf with a schema needs protobuf: pip install 'barnabas[schemas]'"
            ) from None
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
            pool = descriptor_pool.DescriptorPool()
            for each in files.file:
                pool.Add(each)
            if not files.file:
                raise SchemaError("the descriptors have no file: use protoc -o FILE")
            self._file = pool.FindFileByName(files.file[-1].name)
            self._factory = message_factory.GetMessageClass
            names = list(self._file.message_types_by_name)
            if not message and not names:
                raise SchemaError("the descriptors have no message")
            self._chosen = (
                pool.FindMessageTypeByName(message)
                if message
                else self._file.message_types_by_name[names[0]]
            )
        except (DecodeError, TypeError, KeyError, ValueError) as failure:
            if isinstance(failure, SchemaError):
                raise
            raise SchemaError(f"not descriptors of Protobuf: {failure}") from None
        self.name: str = self._chosen.full_name

    def read(self, data: bytes, path: list[int] | None = None) -> Any:
        """Return a document; a path from the frame says which message of the file it is."""
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError

        descriptor = self._chosen if path is None else self._at(path)
        try:
            found = self._factory(descriptor).FromString(data)
            return MessageToDict(found, preserving_proto_field_name=True)
        except (DecodeError, ValueError, TypeError, RecursionError, OverflowError) as failure:
            raise SchemaError(f"not a {descriptor.full_name}: {failure}") from None

    def _at(self, path: list[int]) -> Any:
        messages = list(self._file.message_types_by_name.values())
        descriptor = None
        for index in path:
            if index >= len(messages):
                raise SchemaError(f"message {path}: the file has no such message")
            descriptor = messages[index]
            messages = list(descriptor.nested_types)
        return descriptor


Schema = AvroSchema | ProtobufSchema


class TopicSchemas:
    """The schemas of one topic: by their ids in frames, and one for bare bytes of each side."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[int, Schema] = OrderedDict()
        self._bare: dict[str, Schema] = {}

    def __bool__(self) -> bool:
        return bool(self._by_id or self._bare)

    def __iter__(self) -> Any:
        yield from ((f"id {number}", each) for number, each in self._by_id.items())
        yield from ((f"{side} without a frame", each) for side, each in self._bare.items())

    def by_id(self, number: int) -> Schema | None:
        """Return the schema that frames with an id are written in, if it was given."""
        return self._by_id.get(number)

    def bare(self, side: str) -> Schema | None:
        """Return the schema of keys or values without a frame, if it was given."""
        return self._bare.get(side)

    def add(self, schema: Schema, number: int | None, side: str) -> None:
        """Use a schema for an id, or for a side if it has none."""
        if number is None:
            self._bare[side] = schema
            return
        if not 0 <= number <= ID_MAX:
            raise SchemaError(f"schema id {number}: must be 0 to {ID_MAX}")
        self._by_id[number] = schema
        while len(self._by_id) > SCHEMAS_MAX:
            self._by_id.popitem(last=False)


NO_SCHEMAS: Final = TopicSchemas()


def schema_of(text: str, message: str = "") -> Schema:
    """Return the schema that a form sent: JSON of Avro, or descriptors of Protobuf in base64."""
    stripped = text.strip()
    if not stripped:
        raise SchemaError("the schema is empty: paste JSON of Avro, or descriptors in base64")
    if stripped[0] in '{["' or stripped in PRIMITIVES:
        try:
            return AvroSchema(stripped)
        except AvroError as failure:
            raise SchemaError(str(failure)) from None
    try:
        descriptors = base64.b64decode("".join(stripped.split()), validate=True)
    except (binascii.Error, ValueError):
        raise SchemaError("neither JSON of Avro nor base64 of Protobuf's descriptors") from None
    return ProtobufSchema(descriptors, message.strip())


def read_with(schema: Schema, data: bytes, *, framed: bool) -> Any:
    """Return the document that bytes are; raise SchemaError or AvroError."""
    if isinstance(schema, AvroSchema):
        return schema.read(data)
    if not framed:
        return schema.read(data)
    try:
        path, payload = read_indexes(data)
    except SerializationError as failure:
        raise SchemaError(str(failure)) from None
    return schema.read(payload, path)

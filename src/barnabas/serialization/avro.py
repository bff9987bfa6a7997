"""Avro: values of a given schema, bare or in the frame of schema registries (extra `schemas`)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.model.errors import ConfigError, SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer
from barnabas.serialization.framing import checked_id, frame, unframe

Schema = str | dict[str, Any] | list[Any]
"""A schema as JSON, or as parsed JSON."""

Schemas = Mapping[int, Schema] | Callable[[int], Schema]
"""Schemas by their ids: a dict, or a function that asks a registry."""


class AvroSerializer(Serializer):
    """Dicts, strings and numbers as Avro.

        AvroSerializer('{"type": "record", "name": "Order", "fields": [...]}')
        AvroSerializer(schema, schema_id=7)     # as clients of a schema registry write it

    Without `schema_id` a value is bare Avro; the id is the one that a registry gave the schema.
    """

    def __init__(self, schema: Schema, schema_id: int | None = None) -> None:
        self._schema = _parsed(schema)
        self._id = checked_id(schema_id)

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        import fastavro

        target = io.BytesIO()
        try:
            fastavro.schemaless_writer(target, self._schema, data)
        except Exception as failure:  # fastavro has no common exception class
            raise SerializationError(f"not a value of the Avro schema: {failure}") from failure
        payload = target.getvalue()
        return payload if self._id is None else frame(self._id, payload)


class AvroDeserializer(Deserializer):
    """Avro as dicts, strings and numbers.

        AvroDeserializer(schema)                         # bare Avro of this schema
        AvroDeserializer(schemas={7: schema})            # in the frame of a schema registry
        AvroDeserializer(wanted, schemas=registry_schema_by_id)

    With `schemas` the writer's schema is looked up by the id in the frame, once per id, and
    `schema`, if it is given, is the reader's: fields are added and dropped by Avro's rules.
    """

    def __init__(self, schema: Schema | None = None, schemas: Schemas | None = None) -> None:
        if schema is None and schemas is None:
            raise ValueError("AvroDeserializer needs schema or schemas")
        self._schema = None if schema is None else _parsed(schema)
        self._schemas = schemas
        self._known: dict[int, Any] = {}

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        if data is None:
            return None
        import fastavro

        payload = bytes(data)
        writer, reader = self._schema, None
        if self._schemas is not None:
            schema_id, payload = unframe(payload)
            writer, reader = self._writer(schema_id), self._schema
        assert writer is not None
        source = io.BytesIO(payload)
        try:
            found = fastavro.schemaless_reader(source, writer, reader)
        except Exception as failure:  # fastavro has no common exception class
            raise SerializationError(f"not a value of the Avro schema: {failure!r}") from failure
        left = len(payload) - source.tell()
        if left:
            raise SerializationError(f"{left} of {len(payload)} bytes of Avro are left over")
        return found

    def _writer(self, schema_id: int) -> Any:
        known = self._known.get(schema_id)
        if known is None:
            assert self._schemas is not None
            try:
                if isinstance(self._schemas, Mapping):
                    found = self._schemas[schema_id]
                else:
                    found = self._schemas(schema_id)
            except LookupError as failure:
                raise SerializationError(f"no schema with id {schema_id}") from failure
            known = self._known[schema_id] = _parsed(found)
        return known


def _parsed(schema: Schema) -> Any:
    try:
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType
    except ImportError as missing:
        raise ConfigError("Avro needs fastavro: pip install 'barnabas[schemas]'") from missing
    try:
        if isinstance(schema, str):
            text = schema.strip()
            # A name alone ("string") is a schema, too.
            schema = json.loads(text) if text[:1] in ("{", "[", '"') else text
        return fastavro.parse_schema(schema)
    except (ValueError, SchemaParseException, UnknownType, KeyError, TypeError) as failure:
        raise ConfigError(f"not an Avro schema: {failure!r}: {str(schema)[:200]}") from None

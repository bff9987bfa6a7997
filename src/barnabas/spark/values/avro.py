"""Values in Avro: its types as Spark's, and one value as a Python object.

`valueSchema` is the writer's schema as JSON. Values are bare Avro; a union must be of null and one
type (or of int and long, float and double), because a column has one type.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from barnabas.model.errors import ConfigError

_PRIMITIVES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
}
_LOGICAL = {
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def avro_ddl(text: str) -> str:
    """Return the Spark type of an Avro schema; raise ConfigError if there is none."""
    return _ddl(_parsed(text), {}, ())


def avro_decoder(text: str) -> Callable[[bytes], Any]:
    """Return a decoder of one value; it raises any exception of the Avro library."""
    import fastavro

    schema = _parsed(text)

    def decode(value: bytes) -> Any:
        source = io.BytesIO(value)
        found = fastavro.schemaless_reader(source, schema, None)
        left = len(value) - source.tell()
        if left:
            raise ValueError(f"{left} of {len(value)} bytes are left over")
        return found

    return decode


def _parsed(text: str) -> Any:
    """Return a schema with full names: with their namespaces, also at their uses."""
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        return fastavro.parse_schema(_as_text(json.loads(text)))
    except UnknownType as failure:
        raise ConfigError(f"valueSchema: unknown Avro type {failure.name}") from None
    except (ValueError, SchemaParseException, KeyError, TypeError) as failure:
        why = f"lacks {failure}" if isinstance(failure, KeyError) else failure
        raise ConfigError(f"valueSchema={text}: not an Avro schema in JSON ({why})") from None


def _as_text(schema: Any) -> Any:
    """Return a schema without `uuid`, which would be decoded to objects that no column has."""
    if isinstance(schema, list):
        return [_as_text(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _as_text(each)
        for name, each in schema.items()
        if (name, each) != ("logicalType", "uuid")
    }


def _ddl(schema: Any, named: dict[str, Any], inside: tuple[str, ...]) -> str:
    if isinstance(schema, list):
        return _ddl(_only(schema), named, inside)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if schema in inside:
            raise ConfigError(f"valueSchema: {schema} must not contain itself")
        if schema in named:
            return _ddl(named[schema], named, inside)
        raise ConfigError(f"valueSchema: unknown Avro type {schema}")
    if not isinstance(schema, dict) or "type" not in schema:
        raise ConfigError(f"valueSchema: {schema!r} is not an Avro type")
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        if "precision" not in schema:
            raise ConfigError(f"valueSchema: {schema!r} needs a precision")
        return f"DECIMAL({schema['precision']}, {schema.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if logical in ("time-millis", "time-micros"):
        raise ConfigError(f"valueSchema: {logical} has no type in Spark")
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        inside = (*inside, schema["name"])
        fields = [
            f"`{field['name']}`: {_ddl(field['type'], named, inside)}" for field in schema["fields"]
        ]
        return f"STRUCT<{', '.join(fields)}>"
    if kind == "array":
        return f"ARRAY<{_ddl(schema['items'], named, inside)}>"
    if kind == "map":
        return f"MAP<STRING, {_ddl(schema['values'], named, inside)}>"
    if kind == "enum":
        return "STRING"
    if kind == "fixed":
        return "BINARY"
    return _ddl(kind, named, inside)


def _only(union: list[Any]) -> Any:
    """Return the one type that a union has besides null."""
    kinds = [kind for kind in union if kind != "null"]
    if len(kinds) == 1:
        return kinds[0]
    if all(isinstance(kind, str) for kind in kinds) and frozenset(kinds) in _WIDER:
        return _WIDER[frozenset(kinds)]
    raise ConfigError(f"valueSchema: a column has one type, but the union {union} has several")

"""Values as typed columns: `valueFormat` is the format of the bytes, `valueSchema` their type.

    binary    the bytes (the default)
    string    text
    json      one object, a struct of the fields in valueSchema ("id INT, name STRING")
    csv       one line, a struct of the fields in valueSchema, in their order
    avro      one Avro value; valueSchema is its schema in JSON
    protobuf  one message; valueSchema is FILE#package.Message, see `protobuf_values`

The column `valueError` is null if the value could be parsed (or there was none), else the
reason; such a value is null. With `includeRawValue` its bytes are in `rawValue`, which is null for
values that could be parsed: for dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError
from barnabas.spark.values.avro import avro_ddl, avro_decoder
from barnabas.spark.values.ddl import struct_of, type_of
from barnabas.spark.values.objects import read_objects
from barnabas.spark.values.protobuf import protobuf_ddl, protobuf_decoder, read_descriptors
from barnabas.spark.values.text import (
    Parse,
    parse_csv,
    parse_json,
    read_strings,
    read_texts,
)

if TYPE_CHECKING:
    import pyarrow as pa

WITHOUT_SCHEMA = ("binary", "string")
FORMATS = (*WITHOUT_SCHEMA, "json", "csv", "avro", "protobuf")
_SAMPLES: dict[str, tuple[Parse, bytes]] = {
    "json": (parse_json, b"{}"),
    "csv": (parse_csv, b"0"),
}
"""Parsers of formats that Arrow supports, not for all types, each with a sample value."""

_PACKAGES = {"avro": "fastavro", "protobuf": "google.protobuf"}
ERROR_COLUMN = "valueError"
RAW_COLUMN = "rawValue"

Read = Callable[["pa.BinaryArray", "pa.DataType"], "tuple[pa.Array, pa.Array]"]
"""Parses values as a type; returns them, and the reason for those that are null."""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How values are parsed; for protobuf `schema` is the message's name."""

    name: str = "binary"
    schema: str = ""
    descriptors: bytes = b""
    with_raw: bool = False

    def ddl(self) -> str:
        """Return the type of the column in Spark's DDL."""
        if self.name == "avro":
            return avro_ddl(self.schema)
        if self.name == "protobuf":
            return protobuf_ddl(self.descriptors, self.schema)
        return f"STRUCT<{self.schema}>" if self.schema else self.name.upper()

    def type(self) -> pa.DataType:
        """Return the type of the column as an Arrow type."""
        return struct_of(self.schema) if self.name in _SAMPLES else type_of(self.ddl())

    def check(self, kind: pa.DataType) -> None:
        """Raise ConfigError if values cannot be parsed as a type: before a task would fail."""
        import pyarrow as pa

        if self.name not in _SAMPLES:
            return
        shown = f"valueFormat={self.name}: a column of type {kind}"
        if not pa.types.is_struct(kind):
            raise ConfigError(f"{shown}: must be a struct, whose fields valueSchema names")
        parse, sample = _SAMPLES[self.name]
        try:
            parse([sample], kind)
        except pa.ArrowNotImplementedError as failure:
            raise ConfigError(f"{shown} cannot be read: {failure}") from failure
        except pa.ArrowInvalid:
            pass  # the sample does not parse, but the type is supported

    def reader(self) -> Read:
        """Return the parser of values."""
        if self.name == "avro":
            return _one_by_one(avro_decoder(self.schema))
        if self.name == "protobuf":
            return _one_by_one(protobuf_decoder(self.descriptors, self.schema))
        if self.name == "string":
            return lambda values, kind: read_strings(values)
        parse, _ = _SAMPLES[self.name]
        return lambda values, kind: read_texts(values, kind, parse)


def parse_value_format(given: Mapping[str, str]) -> ValueFormat:
    """Read `valueFormat`, `valueSchema` and `includeRawValue` from lower-case names."""
    name = given.get("valueformat", "binary").lower()
    schema = given.get("valueschema")
    if name not in FORMATS:
        raise ConfigError(f"valueFormat={name}: must be one of {', '.join(FORMATS)}")
    if name in WITHOUT_SCHEMA:
        if schema is not None:
            raise ConfigError(f"valueSchema={schema}: valueFormat={name} has no schema")
        return ValueFormat(name, with_raw=_with_raw(given, name))
    if schema is None or not schema.strip():
        raise ConfigError(f"valueFormat={name}: needs valueSchema, such as 'id INT, name STRING'")
    package = _PACKAGES.get(name)
    if package is not None and find_spec(package) is None:
        raise ConfigError(f"valueFormat={name}: needs {package}: pip install 'barnabas[schemas]'")
    if name == "protobuf":
        descriptors, message = read_descriptors(schema)
        return ValueFormat(name, message, descriptors, _with_raw(given, name))
    return ValueFormat(name, schema, with_raw=_with_raw(given, name))


def _with_raw(given: Mapping[str, str], name: str) -> bool:
    text = given.get("includerawvalue", "false").lower()
    if text not in ("true", "false"):
        raise ConfigError(f"includeRawValue={text}: must be true or false")
    if text == "true" and name == "binary":
        raise ConfigError("includeRawValue=true: valueFormat=binary leaves values as they are")
    return text == "true"


def _one_by_one(decode: Callable[[bytes], Any]) -> Read:
    """Turn a decoder of one value into a parser of values."""
    return lambda values, kind: read_objects(values, kind, decode, _named)


def _named(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"

"""Values as typed columns: `valueFormat` says how bytes are read, `valueSchema` what is in them.

    binary    the bytes (the default)
    string    text
    json      one object, a struct of the fields in valueSchema ("id INT, name STRING")
    csv       one line, a struct of the fields in valueSchema, in their order
    avro      one Avro value; valueSchema is its schema in JSON
    protobuf  one message; valueSchema is FILE#package.Message, see `protobuf_values`

Beside a `value` that is read stands `valueError`: null where the value could be read (or there was
none), else why not; such a value is null. With `includeRawValue` its bytes are
in `rawValue`, which is null beside values that could be read: for dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError
from barnabas.spark.avro_values import avro_ddl, avro_decoder
from barnabas.spark.protobuf_values import protobuf_ddl, protobuf_decoder, read_descriptors
from barnabas.spark.text_values import parse_csv, parse_json, read_lines, read_strings

if TYPE_CHECKING:
    import pyarrow as pa

WITHOUT_SCHEMA = ("binary", "string")
FORMATS = (*WITHOUT_SCHEMA, "json", "csv", "avro", "protobuf")
_PACKAGES = {"avro": "fastavro", "protobuf": "google.protobuf"}
ERROR_COLUMN = "valueError"
RAW_COLUMN = "rawValue"

Read = Callable[["pa.BinaryArray", "pa.DataType"], "tuple[pa.Array, pa.Array]"]
"""Gives values as a type, and why those that are null could not be read."""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How values are read; for protobuf `schema` is the message's name."""

    name: str = "binary"
    schema: str = ""
    descriptors: bytes = b""
    with_raw: bool = False

    def ddl(self) -> str:
        """Return the type of the column in Spark's words."""
        if self.name == "avro":
            return avro_ddl(self.schema)
        if self.name == "protobuf":
            return protobuf_ddl(self.descriptors, self.schema)
        return f"STRUCT<{self.schema}>" if self.schema else self.name.upper()

    def reader(self) -> Read:
        """Return what reads values."""
        if self.name == "avro":
            return _each(avro_decoder(self.schema))
        if self.name == "protobuf":
            return _each(protobuf_decoder(self.descriptors, self.schema))
        if self.name == "string":
            return lambda values, kind: read_strings(values)
        parse = parse_json if self.name == "json" else parse_csv
        return lambda values, kind: read_lines(values, kind, parse)


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
    if schema is None:
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


def _each(decode: Callable[[bytes], Any]) -> Read:
    """Make a reader of values of what reads one."""

    def read(values: pa.BinaryArray, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
        import pyarrow as pa

        found: list[Any] = []
        errors: list[str | None] = []
        for value in values.to_pylist():
            error = None
            try:
                found.append(None if value is None else decode(value))
            except Exception as failure:  # noqa: BLE001  # bytes of anybody: no common class
                found.append(None)
                error = f"{type(failure).__name__}: {failure}"
            errors.append(error)
        return pa.array(found, kind), pa.array(errors, pa.string())

    return read

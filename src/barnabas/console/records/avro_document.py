"""Avro as documents, within limits on depth and on the number of items.

Written for bytes of strangers: a library would follow a schema that contains itself as deep as the
bytes say, and read a few bytes as billions of items that take none. Numbers stay exact.
"""

from __future__ import annotations

import json
import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any, Final

DEPTH_MAX: Final = 60
ITEMS_MAX: Final = 100_000
SCHEMA_MAX: Final = 256 * 1024

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AvroError(ValueError):
    """A schema that is not Avro's, or bytes that do not follow it."""


class AvroSchema:
    """A checked schema; its named types are found by their full names."""

    def __init__(self, text: str) -> None:
        if len(text) > SCHEMA_MAX:
            raise AvroError(f"a schema of {len(text)} characters: at most {SCHEMA_MAX}")
        try:
            # A name alone ("string") is a schema, too.
            stripped = text.strip()
            found = json.loads(stripped) if stripped[:1] in ("{", "[", '"') else stripped
        except RecursionError:
            raise AvroError("the schema is nested too deep") from None
        except ValueError as failure:
            raise AvroError(f"the schema is not JSON: {failure}") from None
        self.text = text
        self._named: dict[str, Any] = {}
        self._root = self._checked(found, "", 0)

    def read(self, data: bytes) -> Any:
        """Return the document that bytes of this schema are; raise AvroError."""
        reader = _Reader(data, self._named)
        found = reader.read(self._root, 0)
        left = len(data) - reader.at
        if left:
            raise AvroError(f"{left} of {len(data)} bytes are left over")
        return found

    @property
    def name(self) -> str:
        """The name of the outermost type."""
        root = self._root
        if isinstance(root, dict):
            return str(root.get("name") or root["type"])
        return root if isinstance(root, str) else "union"

    def _checked(self, schema: Any, space: str, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise AvroError(f"the schema is nested deeper than {DEPTH_MAX} levels")
        if isinstance(schema, list):
            return [self._checked(each, space, depth + 1) for each in schema]
        if isinstance(schema, str):
            return schema if schema in PRIMITIVES else self._known(schema, space)
        if not isinstance(schema, dict) or "type" not in schema:
            raise AvroError(f"not a type: {str(schema)[:80]}")
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, space, depth)
        if kind == "enum":
            symbols = schema.get("symbols")
            if not isinstance(symbols, list):
                raise AvroError("an enum needs symbols")
            return self._named_type(schema, space, {"type": "enum", "symbols": symbols})
        if kind == "fixed":
            size = schema.get("size")
            if type(size) is not int or size < 0:
                raise AvroError("a fixed type needs a size")
            return self._named_type(schema, space, {**_logical(schema), "type": kind, "size": size})
        if kind == "array":
            items = self._checked(schema.get("items"), space, depth + 1)
            return {"type": "array", "items": items}
        if kind == "map":
            return {"type": "map", "values": self._checked(schema.get("values"), space, depth + 1)}
        if kind in PRIMITIVES and isinstance(kind, str):
            return {**_logical(schema), "type": kind}
        return self._checked(kind, space, depth + 1)

    def _record(self, schema: dict[str, Any], space: str, depth: int) -> Any:
        made: dict[str, Any] = {"type": "record", "fields": []}
        self._named_type(schema, space, made)
        inner = made["name"].rpartition(".")[0]
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise AvroError("a record needs fields")
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise AvroError(f"not a field: {str(each)[:80]}")
            kind = self._checked(each.get("type"), inner, depth + 1)
            made["fields"].append((each["name"], kind))
        return made

    def _named_type(self, schema: dict[str, Any], space: str, made: dict[str, Any]) -> Any:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise AvroError(f"a {made['type']} needs a name")
        if "." not in name:
            own = schema.get("namespace", space)
            name = f"{own}.{name}" if isinstance(own, str) and own else name
        made["name"] = name
        self._named[name] = made
        return made

    def _known(self, name: str, space: str) -> str:
        full = f"{space}.{name}" if space and "." not in name else name
        for each in (full, name):
            if each in self._named:
                return each
        raise AvroError(f"unknown type {name[:80]}")


def _logical(schema: dict[str, Any]) -> dict[str, Any]:
    kept = ("logicalType", "scale")
    return {name: schema[name] for name in kept if name in schema}


class _Reader:
    def __init__(self, data: bytes, named: dict[str, Any]) -> None:
        self._data = data
        self._named = named
        self._left = ITEMS_MAX
        self.at = 0

    def read(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise AvroError(f"more than {ITEMS_MAX} items")
        if depth > DEPTH_MAX:
            raise AvroError(f"nested deeper than {DEPTH_MAX} levels")
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise AvroError(f"branch {branch} of a union of {len(schema)}")
            return self.read(schema[branch], depth + 1)
        if isinstance(schema, str):
            if schema not in PRIMITIVES:
                return self.read(self._named[schema], depth + 1)
            return self._primitive(schema)
        kind = schema["type"]
        if kind == "record":
            return {name: self.read(each, depth + 1) for name, each in schema["fields"]}
        if kind == "array":
            return [self.read(schema["items"], depth + 1) for _ in self._blocks()]
        if kind == "map":
            return {self._string(): self.read(schema["values"], depth + 1) for _ in self._blocks()}
        if kind == "enum":
            index = self._long()
            if not 0 <= index < len(schema["symbols"]):
                raise AvroError(f"symbol {index} of an enum of {len(schema['symbols'])}")
            return schema["symbols"][index]
        found = self._take(schema["size"]) if kind == "fixed" else self._primitive(kind)
        return _meant(found, schema) if "logicalType" in schema else found

    def _blocks(self) -> Any:
        """Yield once per item: blocks of a count, with their size if the count is negative."""
        while count := self._long():
            if count < 0:
                count = -count
                self._long()
            if count > self._left:
                raise AvroError(f"more than {ITEMS_MAX} items")
            for _ in range(count):
                yield None

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return _FLOAT.unpack(self._take(4))[0]
            case "double":
                return _DOUBLE.unpack(self._take(8))[0]
            case "bytes":
                return self._take(self._long())
            case _:
                return self._string()

    def _string(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError as failure:
            raise AvroError(f"a string that is not UTF-8: {failure.reason}") from None

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self._data):
            raise AvroError("truncated")
        found = self._data[self.at : end]
        self.at = end
        return found

    def _long(self) -> int:
        number = shift = 0
        while True:
            if shift > 63:
                raise AvroError("a number of more than 10 bytes")
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7


def _meant(found: Any, schema: dict[str, Any]) -> Any:
    """Return what a logical type stands for; the number itself where it cannot stand for it."""
    kind = schema["logicalType"]
    try:
        if kind == "decimal" and isinstance(found, bytes):
            scale = schema.get("scale", 0)
            if type(scale) is not int or not 0 <= scale <= 1000 or len(found) > 400:
                return found
            with localcontext(prec=1200):
                return Decimal(int.from_bytes(found, "big", signed=True)).scaleb(-scale)
        if kind == "uuid" and isinstance(found, bytes) and len(found) == 16:
            return str(uuid.UUID(bytes=found))
        if kind == "date" and isinstance(found, int):
            return str(date(1970, 1, 1) + timedelta(days=found))
        if kind in ("timestamp-millis", "local-timestamp-millis") and isinstance(found, int):
            moment = _EPOCH + timedelta(milliseconds=found)
            return _moment(moment, kind, "milliseconds")
        if kind in ("timestamp-micros", "local-timestamp-micros") and isinstance(found, int):
            moment = _EPOCH + timedelta(microseconds=found)
            return _moment(moment, kind, "microseconds")
    except (OverflowError, ValueError, ArithmeticError):
        return found
    return found


def _moment(moment: datetime, kind: str, precision: str) -> str:
    if kind.startswith("local"):
        moment = moment.replace(tzinfo=None)
    return moment.isoformat(timespec=precision)

"""Columns in Spark's DDL ("id BIGINT, item STRUCT<name: STRING>") as Arrow types, and back.

Spark parses this notation on its side; here it is parsed where Spark is not available: in a task,
whose function gets typed values, and for `barnabas sql`. Only the types of values are supported.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_TOKENS = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[^\s`<>,:()]+)|(?P<mark>[<>,:()]))"
)

_PLAIN = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "BYTE": "int8",
    "SMALLINT": "int16",
    "SHORT": "int16",
    "INT": "int32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "LONG": "int64",
    "FLOAT": "float32",
    "REAL": "float32",
    "DOUBLE": "float64",
    "STRING": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "DATE": "date32",
}
EXAMPLE = "id BIGINT, name STRING, tags ARRAY<STRING>, item STRUCT<price: DOUBLE>"


def struct_of(text: str) -> pa.StructType:
    """Return the type of "name TYPE, name TYPE"."""
    return _Reader(text).whole(fields=True)


def type_of(text: str) -> pa.DataType:
    """Return the type of "STRUCT<…>", "BIGINT" and the like."""
    return _Reader(text).whole(fields=False)


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        end = 0
        stripped = text.rstrip()
        while end < len(stripped):
            found = _TOKENS.match(stripped, end)
            if found is None:
                raise self._refused(stripped[end : end + 20])
            self._tokens.append(found[0].strip())
            end = found.end()
        self._next = 0

    def whole(self, *, fields: bool) -> Any:
        """Read all tokens."""
        kind = self._fields("") if fields else self._type()
        if self._next < len(self._tokens):
            raise self._refused(self._tokens[self._next])
        return kind

    def _fields(self, end: str) -> Any:
        import pyarrow as pa

        found: list[Any] = []
        while True:
            name = self._take()
            if name in ("", ",", "<", ">", ":", "(", ")"):
                raise self._refused(name)
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            if self._peek() == ":":
                self._take()
            found.append(pa.field(name, self._type()))
            if self._peek().upper() == "NOT":  # NOT NULL does not constrain arriving values
                self._take()
                self._expect("NULL")
            if self._peek() == end:
                return pa.struct(found)
            self._expect(",")

    def _type(self) -> Any:
        import pyarrow as pa

        word = self._take()
        upper = word.upper()
        if upper in _PLAIN:
            return getattr(pa, _PLAIN[upper])()
        if upper in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return pa.timestamp("us", tz="UTC")
        if upper == "TIMESTAMP_NTZ":
            return pa.timestamp("us")
        if upper in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if upper in ("ARRAY", "MAP", "STRUCT"):
            self._expect("<")
            if upper == "STRUCT":
                kind = self._fields(">")
            elif upper == "ARRAY":
                kind = pa.list_(self._type())
            else:
                key = self._type()
                self._expect(",")
                kind = pa.map_(key, self._type())
            self._expect(">")
            return kind
        raise self._refused(word)

    def _decimal(self) -> Any:
        import pyarrow as pa

        precision, scale = 10, 0
        if self._peek() == "(":
            self._take()
            precision = self._number()
            if self._peek() == ",":
                self._take()
                scale = self._number()
            self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._refused(f"DECIMAL({precision}, {scale})")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        word = self._take()
        if not word.isdigit():
            raise self._refused(word)
        return int(word)

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _expect(self, token: str) -> None:
        found = self._take()
        if found.upper() != token:
            raise self._refused(found)

    def _refused(self, found: str) -> ConfigError:
        why = f"{found!r} is unexpected" if found else "it ends too early"
        return ConfigError(f"schema {self._text!r}: {why}; columns look like: {EXAMPLE}")

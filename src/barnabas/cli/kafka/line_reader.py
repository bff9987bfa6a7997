"""Kafka's LineMessageReader: makes records of the lines of the console producer.

headers, headers.delimiter, key, key.separator, value        h1:v1,h2:v2→key→value
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.model.errors import BarnabasError

Headers = list[tuple[str, bytes | None]]
Row = tuple[bytes | None, bytes | None, Headers]
"""Key, value, headers."""

NAMES = (
    "org.apache.kafka.tools.LineMessageReader",
    "kafka.tools.ConsoleProducer$LineMessageReader",
)


class LineError(BarnabasError):
    """A line, or the properties of the reader, are not what the reader can use."""


class LineReader:
    """Reads lines by Kafka's properties (`parse.key`, `key.separator`, …)."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def flag(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        self._parses_key = flag("parse.key")
        self._parses_headers = flag("parse.headers")
        self._ignores_errors = flag("ignore.error")
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._headers_delimiter = properties.get("headers.delimiter", "\t").encode()
        self._headers_separator = properties.get("headers.separator", ",")
        self._headers_key_separator = properties.get("headers.key.separator", ":").encode()
        null = properties.get("null.marker")
        self._null = None if null is None else null.encode()
        self._line = 0
        self._check()
        self._split = re.compile(self._headers_separator.encode())

    def _check(self) -> None:
        named = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": self._headers_separator.encode(),
            "headers.key.separator": self._headers_key_separator,
        }
        pairs = [
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ]
        for one, other in pairs:
            if named[one] == named[other]:
                raise LineError(f"{one} and {other} may not be equal")
        for name, value in {"key.separator": self._key_separator, **named}.items():
            if value == self._null:
                raise LineError(f"null.marker and {name} may not be equal")
        try:
            re.compile(self._headers_separator)
        except re.error as failure:
            raise LineError(
                f"headers.separator={self._headers_separator}: not a regular expression: {failure}"
            ) from failure

    def row(self, line: bytes) -> Row:
        """Return the record of the next line; raise LineError if a separator is missing."""
        self._line += 1
        rest = line
        headers: Headers = []
        if self._parses_headers:
            text, rest = self._taken(rest, line, self._headers_delimiter, "headers delimiter")
            if text is not None and text != self._null:
                headers = [self._header(pair) for pair in self._pairs(text)]
        key = None
        if self._parses_key:
            key, rest = self._taken(rest, line, self._key_separator, "key separator")
        return self._or_null(key), self._or_null(rest), headers

    def _or_null(self, data: bytes | None) -> bytes | None:
        return None if data == self._null else data

    def _taken(
        self, rest: bytes, line: bytes, separator: bytes, what: str
    ) -> tuple[bytes | None, bytes]:
        """Return what precedes a separator, and what follows it."""
        found, given, after = rest.partition(separator)
        if given:
            return found, after
        if self._ignores_errors:
            return None, rest
        shown = line.decode(errors="replace")
        raise LineError(f"No {what} found on line number {self._line}: '{shown}'")

    def _pairs(self, text: bytes) -> list[bytes]:
        pairs = self._split.split(text)
        while len(pairs) > 1 and not pairs[-1]:  # as Java's split
            pairs.pop()
        return pairs

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, given, value = pair.partition(self._headers_key_separator)
        shown = pair.decode(errors="replace")
        if not given:
            if self._ignores_errors:
                return shown, None
            raise LineError(
                f"No header key separator found in pair '{shown}' on line number {self._line}"
            )
        if name == self._null:
            raise LineError(
                f"Header keys should not be equal to the null marker '{name.decode()}' "
                "as they can't be null"
            )
        return name.decode(errors="replace"), self._or_null(value)

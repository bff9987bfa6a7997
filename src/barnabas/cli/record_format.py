r"""How `consume` prints a record: a format of %-letters, or one JSON object per line.

    %t topic   %p partition   %o offset   %T timestamp in ms   %h headers (name=value,...)
    %k key     %v value       %K, %V their sizes in bytes (-1 for null)       %% a percent sign
    \t \n \r \0 \\ \xNN      as everywhere

Keys and values are written as raw bytes. In JSON, they are strings if they are valid UTF-8, and
`{"base64": "..."}` otherwise, so that no byte is lost.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from barnabas.cli.arguments import escaped


class PrintableRecord(Protocol):
    """What a formatter needs of a record."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


Formatter = Callable[[str, int, PrintableRecord], bytes]
"""Formats (topic, partition, record) as the bytes to print."""


Template = list[bytes | str]
"""A parsed format: literal bytes, and the letters that follow a %."""

LETTERS = "tpoThkvKV"


def parse_format(text: str) -> Template:
    """Parse a format; raise ArgumentTypeError for an unknown letter."""
    template: Template = []
    rest = text
    while rest:
        literal, percent, rest = rest.partition("%")
        template.append(escaped(literal))
        if not percent:
            break
        letter, rest = rest[:1], rest[1:]
        if letter == "%":
            template.append(b"%")
        elif letter and letter in LETTERS:
            template.append(letter)
        else:
            known = ", ".join(f"%{letter}" for letter in LETTERS + "%")
            raise argparse.ArgumentTypeError(
                f"unknown %{letter} in {text!r}; must be one of {known}"
            )
    return template


def compile_format(template: Template, null_marker: bytes = b"") -> Formatter:
    """Return the formatter of a template; null keys, values and headers print as `null_marker`."""
    letters: dict[str, Formatter] = {
        "t": lambda topic, partition, record: topic.encode(),
        "p": lambda topic, partition, record: b"%d" % partition,
        "o": lambda topic, partition, record: b"%d" % record.offset,
        "T": lambda topic, partition, record: b"%d" % record.timestamp,
        "h": lambda topic, partition, record: _headers(record, null_marker),
        "k": lambda topic, partition, record: null_marker if record.key is None else record.key,
        "v": lambda topic, partition, record: null_marker if record.value is None else record.value,
        "K": lambda topic, partition, record: b"%d" % _size(record.key),
        "V": lambda topic, partition, record: b"%d" % _size(record.value),
    }
    pieces = [piece if isinstance(piece, bytes) else letters[piece] for piece in template]

    def formatted(topic: str, partition: int, record: PrintableRecord) -> bytes:
        return b"".join(
            piece if isinstance(piece, bytes) else piece(topic, partition, record)
            for piece in pieces
        )

    return formatted


def json_line(topic: str, partition: int, record: PrintableRecord) -> bytes:
    """Return one record as a line of JSON."""
    document = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [[name, json_bytes(value)] for name, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def json_bytes(data: bytes | None) -> Any:
    """Return bytes as a JSON value."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _headers(record: PrintableRecord, null_marker: bytes) -> bytes:
    return b",".join(
        name.encode() + b"=" + (null_marker if value is None else value)
        for name, value in record.headers
    )


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)

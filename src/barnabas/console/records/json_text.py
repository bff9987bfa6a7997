"""JSON as it was written: parsed with exact numbers, and indented without changing a token.

Parsing a document and writing it again would round numbers, drop repeated members and change
escapes. So what is shown comes from the tokens of the original. Both are bounded in size and depth.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

DOCUMENT_MAX: Final = 1 << 20
"""Bytes of a document that is parsed; a larger one is text."""

DEPTH_MAX: Final = 100
_DIGITS_MAX: Final = 4000  # Python's own limit, which guards int() against quadratic time
_INDENT: Final = "  "


class NotJsonError(ValueError):
    """Bytes that are not JSON, or more of it than is parsed."""


def parse_json(data: bytes | str) -> Any:
    """Return a document with numbers as int or Decimal; raise NotJsonError."""
    if len(data) > DOCUMENT_MAX:
        raise NotJsonError(f"{len(data)} bytes of JSON: at most {DOCUMENT_MAX} are parsed")
    try:
        text = data if isinstance(data, str) else data.decode()
        return _parse(text)
    except RecursionError:
        raise NotJsonError("nested too deep") from None
    except ValueError as failure:
        raise NotJsonError(str(failure)) from None
    except ArithmeticError:
        raise NotJsonError("a number that no decimal can hold") from None


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) < _DIGITS_MAX else Decimal(text)


def _constant(text: str) -> Any:
    raise NotJsonError(f"{text} is not JSON")


_parse = json.JSONDecoder(parse_int=_whole, parse_float=Decimal, parse_constant=_constant).decode

# Matches every token of a valid document, which is all that it is used for.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def indent_json(text: str) -> str:
    """Return a valid document on indented lines, each token as it was written.

    Raise NotJsonError if it is nested too deep to be indented.
    """
    written: list[str] = []
    depth = 0
    opened = False
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in ("}", "]"):
            depth -= 1
            if not opened:
                written.append("\n" + _INDENT * depth)
            written.append(token)
            opened = False
            continue
        if opened:
            written.append("\n" + _INDENT * depth)
            opened = False
        if token in ("{", "["):
            depth += 1
            if depth > DEPTH_MAX:
                raise NotJsonError(f"nested deeper than {DEPTH_MAX} levels")
            opened = True
            written.append(token)
        elif token == ",":
            written.append(",\n" + _INDENT * depth)
        elif token == ":":
            written.append(": ")
        else:
            written.append(token)
    return "".join(written)


def write_json(document: Any, depth: int = 0) -> str:
    """Return what a decoder made as indented JSON; numbers stay exact.

    Raise NotJsonError if it is nested too deep.
    """
    if depth > DEPTH_MAX:
        raise NotJsonError(f"nested deeper than {DEPTH_MAX} levels")
    if isinstance(document, dict):
        members = [
            f"{_quoted(name)}: {write_json(member, depth + 1)}" for name, member in document.items()
        ]
        return _enclosed("{}", members, depth)
    if isinstance(document, list | tuple):
        return _enclosed("[]", [write_json(each, depth + 1) for each in document], depth)
    if isinstance(document, bytes | bytearray | memoryview):
        return _quoted(bytes(document).hex())
    if isinstance(document, bool):
        return "true" if document else "false"
    if document is None:
        return "null"
    if isinstance(document, int | float | Decimal):
        return str(document)
    return _quoted(document)


def _quoted(found: object) -> str:
    return json.dumps(found if isinstance(found, str) else str(found), ensure_ascii=False)


def _enclosed(brackets: str, inside: list[str], depth: int) -> str:
    if not inside:
        return brackets
    margin = "\n" + _INDENT * depth
    separator = "," + margin + _INDENT
    return brackets[0] + margin + _INDENT + separator.join(inside) + margin + brackets[1]

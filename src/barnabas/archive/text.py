r"""Bytes as strings and back, without loss, for formats that hold strings.

In JSON: null, a string, or {"base64": "..."} for what is not UTF-8. In a cell of CSV, which has
only strings: `\N` for null, the string itself, or `\x` and hexadecimal digits for what is not UTF-8
or begins with a backslash.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from barnabas.model.errors import BarnabasError

NULL = "\\N"
HEX = "\\x"


class ArchiveError(BarnabasError):
    """A file that cannot be read or written in its format."""


def to_json(data: bytes | None) -> Any:
    """Return bytes as a JSON value."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def from_json(found: Any) -> bytes | None:
    """Return the bytes that `to_json` was given; raise ValueError for anything else."""
    if found is None:
        return None
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, dict) and list(found) == ["base64"] and isinstance(found["base64"], str):
        try:
            return base64.b64decode(found["base64"], validate=True)
        except binascii.Error as failure:
            raise ValueError(f"{found['base64']!r} is not base64") from failure
    raise ValueError(f'{found!r} must be one of: null, a string, {{"base64": ...}}')


def to_cell(data: bytes | None) -> str:
    """Return bytes as a cell."""
    if data is None:
        return NULL
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return HEX + data.hex()
    return HEX + data.hex() if text.startswith("\\") else text


def from_cell(cell: str) -> bytes | None:
    r"""Return the bytes of a cell; raise ValueError for an unknown escape sequence."""
    if not cell.startswith("\\"):
        return cell.encode()
    if cell == NULL:
        return None
    if cell.startswith(HEX):
        try:
            return bytes.fromhex(cell[len(HEX) :])
        except ValueError:
            pass
    raise ValueError(
        rf"{cell[:40]!r}: a backslash must be followed by N, or x and hexadecimal digits"
    )

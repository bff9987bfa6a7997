"""The golden files of `wire/`: one per API, with known values and their bytes in every version.

    FetchRequest {'max_wait_ms': 500, ...}        a message, as the fields that are not default
    0  ffffffff000001f4...                        its bytes, in hex, in version 0
    ...

A version carries what it can of the value (see `restrict`). The files were written once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.unit.wire.samples import all_messages, from_literal, restrict

from barnabas.wire.schema import Message

FOLDER = Path(__file__).parent / "wire"


class Golden(NamedTuple):
    """One message in one version, and its bytes."""

    message: Any
    version: int
    data: bytes

    @property
    def cls(self) -> type[Message]:
        return type(self.message)


def golden_of(path: Path) -> Iterator[Golden]:
    """Read one file."""
    classes = {cls.__name__: cls for cls in all_messages()}
    value: Any = None
    for line in path.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if not word:
            continue
        if word.isdigit():
            yield Golden(restrict(value, int(word)), int(word), bytes.fromhex(rest))
        else:
            value = from_literal(classes[word], ast.literal_eval(rest))


def all_golden() -> list[Golden]:
    """Read all files."""
    return [golden for path in sorted(FOLDER.glob("*.txt")) for golden in golden_of(path)]

"""Counts the error codes in responses, success included, wherever a response has one.

    count = error_counter(ProduceResponse, 9)
    succeeded = count(response, failed)      # `failed` maps other codes to how often each occurred

A function is compiled for each response and version from the declaration of the message: it visits
nothing but the codes, and what leads to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from barnabas.wire.schema import Message, Struct

CODE = "error_code"
Failed: TypeAlias = dict[int, int]
CountErrors: TypeAlias = Callable[[Any, Failed], int]


def error_counter(cls: type[Message], version: int) -> CountErrors:
    """Return the function for a response in a version."""
    body = _lines(cls, version, "response", 1)
    source = ["def count(response, failed):", "    none = 0", *body, "    return none"]
    names: dict[str, Any] = {}
    exec("\n".join(source), names)
    count: CountErrors = names["count"]
    return count


def _lines(cls: type[Struct], version: int, value: str, depth: int) -> Iterator[str]:
    """Yield the lines that visit the codes below a struct, none if it has none."""
    space = "    " * depth
    for field in cls.FIELDS:
        if version not in field.versions:
            continue
        if field.name == CODE:
            yield f"{space}code = {value}.{CODE}"
            yield f"{space}if code:"
            yield f"{space}    failed[code] = failed.get(code, 0) + 1"
            yield f"{space}else:"
            yield f"{space}    none += 1"
        elif field.struct is not None:
            inner = f"v{depth}"
            lines = list(_lines(field.struct, version, inner, depth + 1))
            if not lines:
                continue
            if field.is_array:
                absent = " or ()" if field.is_nullable(version) else ""
                yield f"{space}for {inner} in {value}.{field.name}{absent}:"
            else:
                yield f"{space}{inner} = {value}.{field.name}"
                yield f"{space}if {inner} is not None:"
            yield from lines

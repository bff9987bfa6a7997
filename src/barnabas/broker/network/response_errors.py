"""Counts the error codes in responses, success included, wherever a response has one.

The lines that do it are made for each response and version from the declaration of the message:
they visit nothing but the codes, and what leads to them. They become part of a function that is
called for every response, because a call of their own would cost as much as they do.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.wire.schema import Message, Struct

CODE = "error_code"


def error_lines(response: type[Message], version: int) -> Iterator[str]:
    """Yield lines of Python that look at `response` in a version.

    They add the number of successes to `none`, count the other codes in `failed`, and leave the
    last of these in `error`.
    """
    yield from _lines(response, version, "response", 1)


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
            yield f"{space}    error = code"
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

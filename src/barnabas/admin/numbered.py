"""Enumerations whose numbers and names are read from the wire or given by a caller."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from barnabas.model.errors import InvalidValueError

E = TypeVar("E", bound=Enum)


def member_of(kind: type[E], value: object) -> E:
    """Return the member for a value on the wire; UNKNOWN if this release does not know it."""
    try:
        return kind(value)
    except ValueError:
        return kind["UNKNOWN"]


def chosen(kind: type[E], given: object) -> E:
    """Return the member that a caller means: itself, its value, or its name in any spelling.

    chosen(ConfigResourceType, "topic") is chosen(ConfigResourceType, 2)
    """
    if isinstance(given, kind):
        return given
    try:
        return kind(given)
    except ValueError:
        pass
    spelled = str(given).strip().upper().replace("-", "_").replace(" ", "_")
    if spelled in kind.__members__:
        return kind[spelled]
    near = get_close_matches(spelled, kind.__members__, 1)
    hint = f"did you mean {near[0]}?" if near else f"must be one of {', '.join(kind.__members__)}"
    raise InvalidValueError(f"{given!r} is not a {kind.__name__}; {hint}")

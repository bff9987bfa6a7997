"""Enumerations whose numbers and words come off the wire or from a caller."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from barnabas.model.errors import InvalidValueError

E = TypeVar("E", bound=Enum)


def member_of(kind: type[E], value: object) -> E:
    """Return the member for a value off the wire; what this release does not know is UNKNOWN."""
    try:
        return kind(value)
    except ValueError:
        return kind["UNKNOWN"]


def chosen(kind: type[E], given: object) -> E:
    """Return the member that a caller means: itself, its value, or its name however written.

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
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(kind.__members__)}"
    raise InvalidValueError(f"{given!r} is no {kind.__name__}; {hint}")

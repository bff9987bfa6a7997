"""Patterns that clients send: matched in linear time, for any pattern.

A client's regular expression runs inside the broker, so a backtracking matcher would let one client
stall all others. RE2 does not backtrack; its syntax is also the one that Kafka documents.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.model.errors import InvalidValueError

LENGTH_MAX = 1000
"""Maximum length of a pattern."""


class Pattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> object | None:
        """Match the whole string, or return None."""


def compile_pattern(text: str) -> Pattern:
    """Compile a client's pattern; raise InvalidValueError with the reason if it is invalid."""
    import re2  # only needed if a client sends a pattern

    if len(text) > LENGTH_MAX:
        raise InvalidValueError(f"pattern of {len(text)} characters: must be at most {LENGTH_MAX}")
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as failure:
        [reason] = failure.args
        said = reason.decode() if isinstance(reason, bytes) else reason
        raise InvalidValueError(f"{text!r} is not a regular expression: {said}") from failure
    return compiled

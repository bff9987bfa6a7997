"""Patterns that clients send: matched in time linear in the text, whatever the pattern.

A client's regular expression runs inside the broker, so a matcher that backtracks would let one
client stall all others. RE2 does not; it is also the syntax that Kafka promises.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.model.errors import InvalidValueError

LENGTH_MAX = 1000
"""Longest pattern that is compiled."""


class Pattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> object | None:
        """Match the whole text, or return None."""


def compile_pattern(text: str) -> Pattern:
    """Compile a client's pattern; raise InvalidValueError, with the reason, if it is none."""
    import re2  # only asked for when a client sends a pattern

    if len(text) > LENGTH_MAX:
        raise InvalidValueError(f"a pattern of {len(text)} characters: at most {LENGTH_MAX}")
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as failure:
        raise InvalidValueError(f"{text!r} is not a regular expression: {failure}") from failure
    return compiled

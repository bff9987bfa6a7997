"""Spark's failures, which are pages of stack traces, as the one line that says what went wrong.

The last error of a Python traceback in the string is the cause if there is one: a source, a sink
or a definition raised it. Otherwise it is what follows the last error class, as in
`[TABLE_OR_VIEW_NOT_FOUND] The table … cannot be found. … SQLSTATE: 42P01`.
"""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(
    r"^(?:\w+\.)*(\w+): (.+?)(?=\n\s*\n|\n\S*Exception|\n\tat |\n--- |\Z)", re.M | re.S
)
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*(.*)", re.S)
_END = re.compile(
    r"\s*(?:SQLSTATE: \w+|JVM stacktrace:|\n\tat |\n\s*\n== |\n== SQL|;\n'?[A-Z+]).*", re.S
)
_OUR_OWN = re.compile(r"(?:ConfigError|InvalidValueError|BarnabasError|PipelineError)$")
_WRAPPERS = (
    "STREAM_FAILED",
    "PYTHON_DATA_SOURCE_ERROR",
    "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
    "USER_RAISED_EXCEPTION",
)
_QUERY = re.compile(r"Query \[id = [^\]]*\] terminated with exception:\s*")
_LENGTH_MAX = 600


def explain(text: str) -> str:
    """Return the line that a user needs."""
    raised = _raised(text)
    if raised is not None:
        return raised
    found = _innermost(text)
    if found is None:
        return _line(text)
    name, message = found
    line = _QUERY.sub("", _line(message))
    if not line:
        return name
    return line if name.split(".")[0] in _WRAPPERS else f"{line} ({name})"


def _raised(text: str) -> str | None:
    """Return the message of the last Python error in a string."""
    start = text.rfind(_TRACEBACK)
    if start < 0:
        return None
    errors = _RAISED.findall(_END.sub("", text[start + len(_TRACEBACK) :]))
    if not errors:
        return None
    kind, message = errors[-1]
    return _line(message) if _OUR_OWN.search(kind) else f"{kind}: {_line(message)}"


def _innermost(text: str) -> tuple[str, str] | None:
    """Return the class and the message of the innermost error."""
    found = None
    rest = text
    while (match := _CLASS.search(rest)) is not None:
        name, rest = match.groups()
        found = (name, rest)
        if name.split(".")[0] not in _WRAPPERS:
            break
    return found


def _line(text: str) -> str:
    line = " ".join(_END.sub("", text.strip()).split())
    return line if len(line) <= _LENGTH_MAX else f"{line[:_LENGTH_MAX]}…"

r"""Java properties: the file format of Kafka's configuration, read and written.

A line is `name=value`, `name:value` or `name value`; `#` and `!` start comments; a trailing
backslash joins the next line; `\n`, `\t`, `\uXXXX` and so on are escapes. If a name occurs several
times, the last line wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from barnabas.model.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.))")
_SPECIAL = re.compile(r"[\\\t\n\r\f]|[^\x20-\x7e]")


def read_properties(text: str) -> dict[str, str]:
    """Return the names and values of a properties file; raise ConfigError for a broken escape."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        name = _NAME.match(line)
        assert name is not None  # it matches the empty string
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None
        # An escaped separator stays in the name; a trailing space stays in the value.
        properties[_unescape(name.group())] = _unescape(line[separator.end() :])
    return properties


def write_properties(properties: Mapping[str, str], comment: str | None = None) -> str:
    """Return a properties file, in the order of the mapping, that reads back unchanged."""
    lines = [f"# {line}" for line in comment.splitlines()] if comment else []
    for name, value in properties.items():
        escaped = re.sub(r"([=: #!])", r"\\\1", _escape(name))
        body = _escape(value)
        if body.startswith(" "):
            body = "\\" + body
        lines.append(f"{escaped}={body}")
    return "".join(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blank lines, with continuation lines joined."""
    pending: str | None = None
    # Only these end a line; str.splitlines knows more, such as a form feed.
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
            continue
        pending = None
        yield line
    if pending is not None:
        yield pending


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        digits, char = match.groups()
        if digits is None:
            return _ESCAPES.get(char, char)
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise ConfigError(f"\\u{digits}: a unicode escape has four hexadecimal digits")
        return chr(int(digits, 16))

    unescaped = _ESCAPE.sub(replace, text)
    # Characters beyond 16 bits are escaped as surrogate pairs.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str) -> str:
    short = {char: f"\\{letter}" for letter, char in _ESCAPES.items()} | {"\\": "\\\\"}

    def replace(match: re.Match[str]) -> str:
        char = match.group()
        if char in short:
            return short[char]
        halves = char.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))

    return _SPECIAL.sub(replace, text)

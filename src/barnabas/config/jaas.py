"""JAAS: logins as Kafka's options and files have them, in the grammar of Java's StreamTokenizer.

    jaas_entry('org.…PlainLoginModule required username="a" password="b";', "sasl.jaas.config")
    jaas_file('KafkaServer { org.…ScramLoginModule required username="a"; };')

A value is quoted, with escapes, or a bare word; comments begin with `/`. The class is not loaded:
it only has to be there. Error messages have names of options and never values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.model.errors import ConfigError

FLAGS = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""
      (?P<blank> [\x00-\x20]+ | /\*.*?\*/ | /[^\r\n]* )
    | (?P<word> [A-Za-z_$\u00a0-\U0010ffff] [A-Za-z0-9_$.\-\u00a0-\U0010ffff]* )
    | "(?P<double> (?: [^"\\\r\n] | \\[^\r\n] )* )"
    | '(?P<single> (?: [^'\\\r\n] | \\[^\r\n] )* )'
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_QUOTED = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"}
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasEntry(NamedTuple):
    """One login module: its class, its flag and its options."""

    module: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"{self.module} {self.flag} {' '.join(f'{name}=[hidden]' for name in self.options)}"


class _Token(NamedTuple):
    text: str
    is_mark: bool
    """Whether it is a single character with a meaning, or none, of its own."""


_END = _Token("", True)


def jaas_entry(text: str, option: str) -> JaasEntry:
    """Parse the one entry of an option; raise ConfigError naming the option and what is wrong."""
    tokens = _Tokens(text, option)
    entry = _entry(tokens)
    if tokens.peek() is not _END:
        raise tokens.error("only one login module is allowed")
    return entry


def jaas_file(text: str, path: str) -> dict[str, tuple[JaasEntry, ...]]:
    """Parse a file of sections, `Name { entry; … };`; return the entries of each."""
    tokens = _Tokens(text, path)
    sections: dict[str, tuple[JaasEntry, ...]] = {}
    while tokens.peek() is not _END:
        name = tokens.text("the name of a section")
        if name in sections:
            raise tokens.error(f"section {name} is given twice")
        tokens.mark("{", f"section {name}")
        entries: list[JaasEntry] = []
        while tokens.peek() != _Token("}", True):
            entries.append(_entry(tokens))
        tokens.mark("}", f"section {name}")
        tokens.mark(";", f"section {name}")
        if not entries:
            raise tokens.error(f"section {name} has no login module")
        sections[name] = tuple(entries)
    return sections


def quoted(value: str) -> str:
    """Return a value as it stands in an entry, whatever characters it has."""
    for character, escape in _QUOTED.items():  # the backslash first
        value = value.replace(character, escape)
    return f'"{value}"'


def _entry(tokens: _Tokens) -> JaasEntry:
    if tokens.peek() is _END:
        raise tokens.error("has no login module")
    module = tokens.text("the class of the login module")
    flag = tokens.text("the flag of the login module").lower()
    if flag not in FLAGS:
        raise tokens.error(
            "the flag of the login module must be required, requisite, sufficient or optional"
        )
    options: dict[str, str] = {}
    last = "its flag"
    while tokens.peek() != _Token(";", True):
        if tokens.peek() is _END:
            raise tokens.error(f"a semicolon is missing after {last}")
        name = tokens.text(f"an option after {last}")
        # Not by its name: after a stray quote that would be a piece of the value before.
        tokens.mark("=", f"the name of the option that follows {last}")
        options[name] = tokens.text(f"the value of {name}; quote values that are not plain words")
        last = f"option {name}"
    tokens.mark(";", last)
    return JaasEntry(module, flag, options)


class _Tokens:
    """The tokens of a string, one ahead."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._rest = self._split(text)
        self._next = next(self._rest)

    def peek(self) -> _Token:
        """Return the next token and leave it there."""
        return self._next

    def text(self, what: str) -> str:
        """Take a word or a quoted string."""
        token = self._take()
        if token.is_mark:
            raise self.error(f"cannot read {what}")
        return token.text

    def mark(self, character: str, where: str) -> None:
        """Take a character of the grammar."""
        if self._take() != _Token(character, True):
            raise self.error(f"{character!r} is missing after {where}")

    def error(self, why: str) -> ConfigError:
        """Return the error, which shows nothing of the text but names of options."""
        return ConfigError(f"{self._name}=[hidden]: {why}")

    def _take(self) -> _Token:
        taken = self._next
        if taken is not _END:
            self._next = next(self._rest)
        return taken

    def _split(self, text: str) -> Iterator[_Token]:
        for match in _TOKEN.finditer(text):
            kind, value = match.lastgroup, match[match.lastgroup or 0]
            if kind in ("double", "single"):
                yield _Token(_ESCAPE.sub(_unescaped, value), False)
            elif kind != "blank":
                yield _Token(value, kind == "mark")
        yield _END


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8))
    return _ESCAPED.get(escape, escape)

"""Command lines of Kafka's tools as its documentation writes them, read from files.

The format is described in tests/interop/command_lines/README.md. The test runs them, and the
reference of the tools lists where ours differ.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "interop" / "command_lines"
MARKS = (
    "differs",
    "only ours",
    "setup",
    "until",
    "unsorted",
    "numbers",
    "words",
    "code only",
    "exits",
)


class Malformed(Exception):
    """A line that is not of the format."""


@dataclass
class Line:
    """One command line, and how it is compared."""

    text: str
    number: int
    """Of the line in its file."""
    input: str = ""
    marks: dict[str, str] = field(default_factory=dict)
    """Mark → what follows its colon."""
    printed: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """Return its words; the first names the tool."""
        return shlex.split(self.text)

    @property
    def tool(self) -> str:
        """Return the tool's name, without `bin/` and `.sh`."""
        return self.words[0].removeprefix("bin/").removesuffix(".sh")


@dataclass
class Session:
    """Command lines that build on each other, from an empty cluster on."""

    file: str
    title: str
    brokers: int = 1
    files: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def read_all() -> list[Session]:
    """Return the sessions of all files."""
    return [session for path in sorted(FOLDER.glob("*.txt")) for session in read(path)]


def read(path: Path) -> list[Session]:
    """Return the sessions of a file."""
    sessions: list[Session] = []
    name = ""
    for number, text in enumerate(path.read_text().splitlines(), 1):
        sign, rest = text[:1], text[2:]
        if not text or sign == "#":
            continue
        if sign == "[":
            sessions.append(_session(path, number, text))
            continue
        if not sessions or text[1:2] not in ("", " "):
            raise Malformed(f"{path.name}:{number}: {text!r}")
        session = sessions[-1]
        if sign == "@":
            name = rest
            session.files[name] = ""
        elif sign == "|":
            session.files[name] += rest + "\n"
        elif sign == "$":
            session.lines.append(Line(rest, number))
        elif not session.lines:
            raise Malformed(f"{path.name}:{number}: no command line before {text!r}")
        elif sign == "<":
            session.lines[-1].input += rest + "\n"
        elif sign == ">":
            session.lines[-1].printed.append(rest)
        elif sign == "~":
            mark, _, what = rest.partition(":")
            if mark not in MARKS:
                raise Malformed(f"{path.name}:{number}: {mark!r} is none of {', '.join(MARKS)}")
            session.lines[-1].marks[mark] = what.strip()
        else:
            raise Malformed(f"{path.name}:{number}: {text!r}")
    return sessions


def _session(path: Path, number: int, text: str) -> Session:
    found = re.fullmatch(r"\[([^\]]+)\](?: brokers=([13]))?", text)
    if found is None:
        raise Malformed(f"{path.name}:{number}: {text!r}")
    return Session(path.stem, found[1], int(found[2] or 1))

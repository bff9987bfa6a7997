"""The flags of one of Kafka's tools: declared as rows, read as Kafka's tools read them.

`--flag value`, `--flag=value`, one dash instead of two, and the beginning of a name that no other
flag has (`--bootstrap`). What is wrong is a `UsageError`: Kafka's tools exit with 1 for it, not 2.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.errors import BarnabasError, InvalidValueError

WIDTH = 38
"""The column of the help at which descriptions begin."""


NUMBERS: dict[Callable[[str], Any], str] = {
    int: "must be a whole number",
    float: "must be a number",
}
"""What their values must be; Python's own words would not help."""


class UsageError(BarnabasError):
    """A command line that the tool does not accept."""


class Flag(NamedTuple):
    """One row of a tool's table of flags."""

    name: str
    """With its dashes: `--topic`."""
    metavar: str = ""
    """What its value is; without one, it is a switch."""
    help: str = ""
    convert: Callable[[str], Any] = str
    """May raise `argparse.ArgumentTypeError` or ValueError."""
    default: Any = None
    many: bool = False
    """It may be given several times, and its value is a list."""
    several: bool = False
    """It takes all words up to the next flag (at least one), and its value is a list."""
    required: bool = False
    optional_value: bool = False
    """It may stand without a value, which is then an empty text."""
    inert: str = ""
    """Why it does nothing here; it is accepted, and that is said once on standard error."""
    aliases: tuple[str, ...] = ()
    """Other names of it: `-b`."""
    read_late: bool = False
    """Kafka's tool reads its value when it is used: a wrong one is a failure of the tool's work."""

    @property
    def key(self) -> str:
        """Its name in `Given`: `topic`."""
        return self.name.lstrip("-")


BOOTSTRAP = Flag("--bootstrap-server", "HOST:PORT[,...]", "brokers to connect to")
ZOOKEEPER = Flag("--zookeeper", "HOST:PORT[/CHROOT]", "deprecated: use --bootstrap-server")
COMMAND_CONFIG = Flag("--command-config", "FILE", "properties of the admin client")
HELP = Flag("--help", help="print this list")
VERSION = Flag("--version", help="print the version")


@dataclass(frozen=True, slots=True)
class Flags:
    """All flags of a tool, and which of them belong together."""

    summary: str
    rows: tuple[Flag, ...]
    one_of: tuple[tuple[str, ...], ...] = ()
    """Of each of these groups exactly one flag must be given."""
    excludes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flag → flags that cannot be given beside it."""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flag → flags that must be given with it."""
    words: str = ""
    """What words without dashes are, as in `FILE`; empty: they mean nothing."""
    ignores_words: bool = True
    """Whether words that mean nothing are ignored, as most of Kafka's tools do, or refused."""
    helps_alone: bool = False
    """Without any words, the tool prints its help."""

    def parse(self, words: Sequence[str]) -> Given:
        """Read a command line; raise UsageError where the tool would refuse it."""
        given = Given(self, {"help": True} if self.helps_alone and not words else {}, [])
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                given.words.extend(rest)
                break
            if word.startswith("--"):
                self._take(word, rest, given)
            elif word.startswith("-") and (self._has(word) or self._has(f"-{word}")):
                self._take(word if self._has(word) else f"-{word}", rest, given)
            else:
                given.words.append(word)
        if "help" in given.values or "version" in given.values:
            return given
        self._check(given)
        return given

    def help(self, prog: str) -> str:
        """Return what `--help` prints."""
        lines = [f"usage: {prog} [OPTION]..." + (f" {self.words}" if self.words else "")]
        lines += ["", self.summary, "", "options:"]
        for row in sorted(self.all_rows, key=lambda row: row.name):
            head = f"  {', '.join([row.name, *row.aliases])}" + (
                f" {_shape(row)}" if row.metavar else ""
            )
            notes = row.help + (" (required)" if row.required else "")
            if row.default is not None and row.metavar:
                notes += f" (default: {row.default})"
            if row.inert:
                notes += f" (no effect: {row.inert})"
            lines += _wrapped(head, notes)
        return "\n".join(lines) + "\n"

    @property
    def all_rows(self) -> tuple[Flag, ...]:
        """The tool's rows, and those that every tool has."""
        names = {row.name for row in self.rows}
        return self.rows + tuple(row for row in (HELP, VERSION) if row.name not in names)

    def row(self, key: str) -> Flag:
        """Return the row of a flag that is declared."""
        return next(row for row in self.all_rows if row.key == key)

    def _has(self, word: str) -> bool:
        name = word.partition("=")[0]
        return any(name in (row.name, *row.aliases) for row in self.all_rows)

    def _find(self, name: str) -> Flag:
        rows = {row.name: row for row in self.all_rows}
        for row in rows.values():
            if name in (row.name, *row.aliases):
                return row
        begun = [row for row in rows.values() if row.name.startswith(name) and len(name) > 2]
        if len(begun) == 1:
            return begun[0]
        bare = name.lstrip("-")
        if begun:
            those = ", ".join(sorted(row.name for row in begun))
            raise UsageError(f"{bare} is ambiguous: it may be {those}")
        near = difflib.get_close_matches(name, rows, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{bare} is not a recognized option{hint}")

    def _take(self, word: str, rest: list[str], given: Given) -> None:
        name, equals, text = word.partition("=")
        row = self._find(name)
        given.order.append(row.key)
        if not row.metavar:
            if equals:
                raise UsageError(f"Option {row.key} does not take an argument, but got {text!r}")
            given.values[row.key] = True
            return
        if not equals:
            if rest and not (rest[0].startswith("--") and len(rest[0]) > 2):
                text = rest.pop(0)
            elif not row.optional_value:
                raise UsageError(f"Option {row.key} requires an argument")
        value = self._converted(row, text)
        if row.several:
            value = [value]
            while rest and not rest[0].startswith("--"):
                value.append(self._converted(row, rest.pop(0)))
        if row.many:
            given.values.setdefault(row.key, []).append(value)
        elif row.key in given.values:
            raise UsageError(
                f"Found multiple arguments for option {row.key}, but you asked for only one"
            )
        else:
            given.values[row.key] = value

    def _converted(self, row: Flag, text: str) -> Any:
        try:
            return row.convert(text) if text or not row.optional_value else text
        except InvalidValueError:
            raise
        except (argparse.ArgumentTypeError, ValueError) as failure:
            error = InvalidValueError if row.read_late else UsageError
            unread = error(f"Cannot parse argument '{text}' of option {row.key}")
            if reason := NUMBERS.get(row.convert, str(failure)):
                unread.add_note(reason)
            raise unread from failure

    def _check(self, given: Given) -> None:
        if given.words and not self.words and not self.ignores_words:
            raise UsageError(f"unrecognized arguments: {given.words[0]!r}")
        for row in self.rows:
            if row.required and row.key not in given.values:
                raise UsageError(f'Missing required argument "[{row.key}]"')
        for group in self.one_of:
            chosen = [key for key in group if key in given.values]
            if len(chosen) != 1:
                those = ", ".join(f"--{key}" for key in group)
                raise UsageError(f"Command must include exactly one action: {those}")
        for key, others in self.excludes.items():
            for other in others:
                if key in given.values and other in given.values:
                    raise UsageError(f'Option "[{key}]" can\'t be used with option "[{other}]"')
        for key, others in self.needs.items():
            for other in others:
                if key in given.values and other not in given.values:
                    raise UsageError(f'Missing required argument "[{other}]"')


class Given:
    """What a command line said."""

    def __init__(self, flags: Flags, values: dict[str, Any], words: list[str]) -> None:
        self.flags = flags
        self.values = values
        self.words = words
        self.order: list[str] = []
        """The flags as they were written, one after the other."""

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __getitem__(self, key: str) -> Any:
        """Return a flag's value: as given, or its default (False for a switch, [] for many)."""
        if key in self.values:
            return self.values[key]
        row = self.flags.row(key)
        if (row.many or row.several) and row.default is None:
            return []
        return row.default if row.metavar else False

    def connection(
        self, config: str = "command-config", timeout_s: float = 30.0
    ) -> argparse.Namespace:
        """Return the arguments with which `barnabas.cli.session.run` connects.

        The brokers are those of `--bootstrap-server`, or those registered at `--zookeeper`.
        """
        from barnabas.cli.command_config import CommandConfig

        file = CommandConfig(self[config])
        bootstrap = self["bootstrap-server"]
        if bootstrap is None and "zookeeper" in self:
            from barnabas.cli.kafka.tree import brokers_in

            protocol = file.options.get("security.protocol", "PLAINTEXT").upper()
            bootstrap = brokers_in(self["zookeeper"], protocol)
        return argparse.Namespace(
            bootstrap=bootstrap,
            command_config=file,
            timeout=timeout_s,
            json=False,
        )


def _shape(row: Flag) -> str:
    return f"[{row.metavar}]" if row.optional_value else row.metavar


def _wrapped(head: str, notes: str) -> list[str]:
    import textwrap

    lines = textwrap.wrap(notes, 100 - WIDTH) or [""]
    if len(head) < WIDTH - 1:
        lines[0] = head.ljust(WIDTH) + lines[0]
        first = 1
    else:
        lines.insert(0, head)
        first = 1
    return [lines[0].rstrip(), *(" " * WIDTH + line for line in lines[first:])]

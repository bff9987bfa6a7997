"""Arguments that several commands share, and the conversions behind them.

A conversion raises `argparse.ArgumentTypeError`, which argparse turns into a usage error (exit
code 2) that names the option and the value.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable

from barnabas.cli.command_config import BOOTSTRAP, CommandConfig

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that talks to a cluster."""
    parser.add_argument(
        "--bootstrap-server",  # as Kafka's own commands call it
        "--bootstrap",
        dest="bootstrap",
        metavar="HOST:PORT[,...]",
        help="brokers to connect to first (default: bootstrap.servers in --command-config, "
        f"$BARNABAS_BOOTSTRAP or {BOOTSTRAP})",
    )
    add_command_config(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="timeout of a call (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_command_config(parser: argparse.ArgumentParser, whose: str = "") -> None:
    """Add the file with options of the command's clients."""
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        type=CommandConfig,
        default=CommandConfig(os.environ.get("BARNABAS_COMMAND_CONFIG")),
        help=f"properties file with client options {whose}(security.protocol, "
        "sasl.jaas.config, …; default: $BARNABAS_COMMAND_CONFIG)",
    )


def add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int | None],
    examples: str,
) -> argparse.ArgumentParser:
    """Add an action of a command that talks to brokers (`create` in `topics create`)."""
    parser = add_word(actions, name, summary, run, examples)
    add_connection(parser)
    return parser


def add_word(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int | None],
    examples: str,
) -> argparse.ArgumentParser:
    """Add an action of a command, with its own help."""
    parser = actions.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def principal(text: str) -> str:
    """Parse a principal: `alice` is short for `User:alice`."""
    if not text:
        raise argparse.ArgumentTypeError("a principal cannot be empty")
    return text if ":" in text else f"User:{text}"


def duration_ms(text: str) -> int:
    """Parse a time span like 90s, 15m, 8h or 7d to milliseconds."""
    found = re.fullmatch(r"([0-9]{1,12})(ms|[smhd])", text)
    span_ms = int(found[1]) * UNITS_MS[found[2]] if found is not None else 0
    if not 0 < span_ms < 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time span like 90s, 15m, 8h or 7d")
    return span_ms


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def count(text: str) -> int:
    """Parse a whole number of at least 1."""
    return _whole_number(text, at_least=1)


def workers(text: str) -> int:
    """Read a number of worker processes; `auto` is one per core that this process may use."""
    if text == "auto":
        available = getattr(os, "sched_getaffinity", None)
        return len(available(0)) if available is not None else os.cpu_count() or 1
    return count(text)


def index(text: str) -> int:
    """Parse a whole number of at least 0."""
    return _whole_number(text, at_least=0)


def _whole_number(text: str, at_least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = at_least - 1
    if value < at_least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {at_least}")
    return value


def assignment(text: str) -> tuple[str, str]:
    """Split `name=value`; the value may be empty or contain `=`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


_ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}


def escaped(text: str) -> bytes:
    r"""Parse a string with \t, \n, \r, \0, \\ and \xNN to bytes."""
    out = bytearray()
    rest = text
    while rest:
        before, backslash, rest = rest.partition("\\")
        out += before.encode(errors="surrogateescape")
        if not backslash:
            break
        if rest[:1] in _ESCAPES and rest:
            out += _ESCAPES[rest[0]]
            rest = rest[1:]
        elif rest[:1] == "x":
            try:
                out += bytes.fromhex(rest[1:3])
            except ValueError:
                raise argparse.ArgumentTypeError(f"\\x{rest[1:3]} in {text!r} is not hex") from None
            rest = rest[3:]
        else:
            raise argparse.ArgumentTypeError(f"unknown escape \\{rest[:1]} in {text!r}")
    return bytes(out)


def separator(text: str) -> bytes:
    """Parse an escaped string that must not be empty."""
    value = escaped(text)
    if not value:
        raise argparse.ArgumentTypeError("a separator cannot be empty")
    return value

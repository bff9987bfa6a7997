"""Runs one of Kafka's tools: its flags, its work, and its failures in Kafka's words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.kafka.flags import Given, UsageError
from barnabas.cli.kafka.tools import Tool


def run(tool: Tool, words: Sequence[str]) -> int:
    """Run a command line of `tool`, and return Kafka's exit code for it.

    A tool's module has `FLAGS`, and `run(given)`, which may return an exit code; or, where Kafka's
    tool has words for actions or a grammar of its own, `main(words)`. `FAILURE`, if it is there, is
    what precedes the reason of a failure; it is on standard output if `FAILS_ON_STDOUT`.
    """
    module = import_module(tool.module)
    prog = f"barnabas {tool.name}"
    try:
        with INTERRUPTION.at_work(tool.name):
            if hasattr(module, "main"):
                return module.main(words) or 0
            given = module.FLAGS.parse(words)
            if given["help"]:
                print(module.FLAGS.help(prog), end="")
                return 0
            if given["version"]:
                print(version_line())
                return 0
            _say_ignored(given, tool.name)
            return module.run(given) or 0
    except UsageError as failure:
        if not words and hasattr(module, "FLAGS"):
            print(module.FLAGS.help(prog), file=sys.stderr)
        lines = [str(failure), *getattr(failure, "__notes__", [])]
        print(f"{': '.join(lines)} (see: {prog} --help)", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except Exception as failure:
        from barnabas.model.errors import BarnabasError

        if INTERRUPTION.was_raised:
            return 0  # caused by the interruption
        if not isinstance(failure, (BarnabasError, OSError)):
            raise
        _say_failed(failure, module)
        INTERRUPTION.closed()
        return 1


def version_line() -> str:
    """Return what `--version` prints: the number first, as scripts expect."""
    from importlib.metadata import version

    return f"{version('barnabas')} (Barnabas)"


def reason_of(failure: BaseException) -> str:
    """Return a failure in one line, as Kafka's tools say it: the broker's message alone."""
    return " ".join(str(failure).split()) or type(failure).__name__


def _say_failed(failure: Exception, module: object) -> None:
    line = getattr(module, "FAILURE", "Error: ") + reason_of(failure)
    notes = getattr(failure, "__notes__", [])
    if getattr(module, "FAILS_ON_STDOUT", False):
        print(line, flush=True)
        if notes:
            print("; ".join(notes), file=sys.stderr)
    else:
        print("; ".join([line, *notes]), file=sys.stderr)


def _say_ignored(given: Given, name: str) -> None:
    for row in given.flags.rows:
        if row.inert and row.key in given:
            print(f"{name}: {row.name} has no effect: {row.inert}", file=sys.stderr)
    if given.words and not given.flags.words:
        print(f"{name}: ignored: {' '.join(given.words)}", file=sys.stderr)

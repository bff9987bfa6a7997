"""The `barnabas` command: imports one subcommand's module, and reports failures in one line.

A command's module has `configure(parser)`, which adds arguments and sets `run` as a default of the
parser; `run(arguments)` does the work and may return an exit code. Exit codes: 0 success, 1
failure, 2 usage error, 130 interrupted, 143 terminated. A reader that closes our output early
(`| head`) is not a failure. Signals are handled in `barnabas.cli.interruption`.

Startup time is part of the contract: this module imports nothing of the client, and `--help` only
reads the table below.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.interruption import INTERRUPTION

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(NamedTuple):
    """One entry of the command table."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("start", "barnabas.cli.start", "run one broker in the foreground"),
    Command("topics", "barnabas.cli.topics", "create, list, describe, alter and delete topics"),
    Command("configs", "barnabas.cli.configs", "show and change options of topics and brokers"),
    Command("acls", "barnabas.cli.acls", "list, add and remove ACLs, show which one decides"),
    Command("users", "barnabas.cli.users", "list, add and remove users of SCRAM, set passwords"),
    Command("tokens", "barnabas.cli.tokens", "create, list, renew and expire delegation tokens"),
    Command("security", "barnabas.cli.security", "secure a cluster: certificates, users, options"),
    Command("quotas", "barnabas.cli.quotas", "show and change how much clients may use"),
    Command("clients", "barnabas.cli.clients", "show the metrics that clients push"),
    Command("produce", "barnabas.cli.produce", "send lines to a topic"),
    Command("consume", "barnabas.cli.consume", "print the records of a topic"),
    Command("perf", "barnabas.cli.perf.command", "measure rates and latencies of clients"),
    Command("log", "barnabas.cli.log", "show, check and repair the files of a stopped broker"),
    Command("groups", "barnabas.cli.groups", "show consumer groups and lag, reset offsets"),
    Command("top", "barnabas.cli.top.command", "watch rates, lag, brokers and latency, live"),
    Command("transactions", "barnabas.cli.transactions", "show transactions, abort hanging ones"),
    Command("why", "barnabas.cli.why", "say why a group, partition or client is as it is"),
    Command("diary", "barnabas.cli.diary", "show what brokers decided, when and why"),
    Command("doctor", "barnabas.cli.doctor.command", "check a cluster, the way to it, a broker"),
    Command("cluster", "barnabas.cli.cluster", "show brokers, controller and API versions"),
    Command(
        "zookeeper-security",
        "barnabas.cli.zookeeper_security",
        "restrict the nodes in ZooKeeper, or open them again",
    ),
    Command("reassign", "barnabas.cli.reassign.command", "move partitions between brokers"),
    Command("elect", "barnabas.cli.elect", "trigger leader elections"),
    Command("mirror", "barnabas.cli.mirror", "copy topics to another cluster, exactly once"),
    Command("pipeline", "barnabas.cli.pipeline", "write, check and run a Spark pipeline"),
    Command("demo", "barnabas.cli.demo", "run a broker and a Spark pipeline with demo data"),
    Command("sql", "barnabas.cli.sql", "query topics in SQL"),
    Command("export", "barnabas.cli.export", "write a topic to files: Parquet, CSV, JSON lines"),
    Command("import", "barnabas.cli.import_", "send the records in files to a topic"),
    Command("tools", "barnabas.cli.tools", "install Kafka's tools by their names"),
    Command("completion", "barnabas.cli.completion", "print a script for your shell's Tab key"),
)

EXAMPLES = """\
examples:
  barnabas start
  barnabas topics create orders --partitions 3
  echo hello | barnabas produce orders
  barnabas consume orders --from beginning --exit-at-end

`barnabas COMMAND --help` describes a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not INTERRUPTION.owns_process:
        INTERRUPTION.begin()
    try:
        code = _dispatch(words)
    except KeyboardInterrupt:
        INTERRUPTION.raised_elsewhere()
        code = 0
    except BrokenPipeError:
        code = 0
    _flush()
    return INTERRUPTION.exit_code(code)


def _flush() -> None:
    """Flush the output; it is not a failure if it is no longer read."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            # The interpreter flushes once more at exit; redirect it to where that succeeds.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if words[0] in ("-V", "--version"):
        from barnabas import __version__

        print(f"barnabas {__version__}")
        return 0
    command = next((command for command in COMMANDS if command.name == words[0]), None)
    if command is None and words[0].startswith(("kafka-", "connect-", "zookeeper-")):
        from barnabas.cli.kafka.tools import nearest_name, tool_named

        if (tool := tool_named(words[0])) is not None:
            from barnabas.cli.kafka.command import run

            return run(tool, words[1:])
        near = nearest_name(words[0])
        hint = f"; did you mean {near}?" if near else ""
        print(f"barnabas: no tool {words[0]!r}{hint} (see: barnabas tools list)", file=sys.stderr)
        return 2
    if command is None:
        names = ", ".join(command.name for command in COMMANDS)
        print(f"barnabas: unknown command {words[0]!r}; commands: {names}", file=sys.stderr)
        return 2
    return _run(command, words[1:])


def _run(command: Command, words: list[str]) -> int:
    try:
        arguments = parser(command).parse_args(words)
    except SystemExit as exit:  # argparse has printed the help or the error
        return exit.code if isinstance(exit.code, int) else 2
    from barnabas.model.errors import BarnabasError

    try:
        with INTERRUPTION.at_work(command.name):
            return arguments.run(arguments) or 0
    except BrokenPipeError:
        raise
    except Exception as failure:
        if INTERRUPTION.was_raised:
            return 0  # caused by the interruption
        if not isinstance(failure, (BarnabasError, OSError)):
            raise
        print(f"barnabas {command.name}: {one_line(failure)}", file=sys.stderr)
        INTERRUPTION.closed()
        return 1


def one_line(failure: BaseException) -> str:
    """Return the failure, and what to do next if the failure suggests it."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    code = getattr(failure, "code", None)
    if code is not None:
        text = f"{text} ({code.name})"
    return "; ".join([text, *getattr(failure, "__notes__", [])])


def parser(command: Command) -> ArgumentParser:
    """Import a command's module and return its argument parser."""
    import argparse
    from importlib import import_module

    parser = argparse.ArgumentParser(
        prog=f"barnabas {command.name}",
        description=command.summary[0].upper() + command.summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    import_module(command.module).configure(parser)
    return parser


def overview() -> str:
    """Return the output of `barnabas --help`, without importing any command."""
    width = max(len(command.name) for command in COMMANDS)
    lines = ["usage: barnabas COMMAND [OPTION]...", "", "commands:"]
    lines += [f"  {command.name.ljust(width)}  {command.summary}" for command in COMMANDS]
    return "\n".join([*lines, "", EXAMPLES])


if __name__ == "__main__":
    raise SystemExit(main())

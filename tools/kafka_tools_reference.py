"""Write docs/reference/kafka-tools.md from the tools' flags, and from what tests found to differ.

python -m tools.kafka_tools_reference            write the page
python -m tools.kafka_tools_reference --check    fail when the page is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools.command_lines import Line, read_all

from barnabas.cli.kafka.flags import Flag
from barnabas.cli.kafka.tools import TOOLS, Tool

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "kafka-tools.md"

HEAD = """\
<!-- Written by tools/kafka_tools_reference.py from the tools and the command lines that tests \
compare: do not edit. -->

# Kafka's tools

Kafka's command lines work as they are written, as `barnabas kafka-topics …`, or by their own names
after [`barnabas tools install`](../how-to/kafka-tools.md): flags (with one dash or two, `--flag
value` or `--flag=value`, shortened as long as they are unique), defaults, exit codes and standard
output. `--help` lists a tool's flags.

| tool | does | accepted to no effect |
| --- | --- | --- |
"""

DIFFERENCES = """
## What differs

`make interop` runs {count} command lines with Apache Kafka 3.9's own tools and with ours, each
against Apache Kafka 3.9 and against Barnabas, and compares exit codes and standard output. In
general:

- Failures are one line, without a stack trace, and often have the next step after the reason.
- Messages of a broker are its own: those of Barnabas have other words than those of Apache Kafka.
- An unknown flag names the nearest one, and refers to `--help` instead of printing the list.
- Java classes cannot be loaded: formatters, deserializers, readers and handlers are Kafka's own.
- Properties of clients that ours do not have are named on standard error, and ignored.
- A record needs a key or a value: `kafka-console-producer` rejects one that has neither.
- `connect-mirror-maker` copies exactly once, in transactions, and translates the offsets of groups
  if `sync.group.offsets.enabled` is set; it writes no topics of heartbeats, checkpoints and offset
  syncs, and copies no ACLs.
- Apache Kafka 3.9 prints the tables of `--reset-offsets` and `--delete-offsets` without line ends,
  names of topics in failures as `Optional[NAME]`, and failures of groups with the Java exception
  around them; ours do not, like Kafka 4.

| command line | difference |
| --- | --- |
"""

OLDER = """
## Older forms

Apache Kafka has removed these, in 3.0 or 4.0; they work here, with the lines about their
deprecation.

| command line | |
| --- | --- |
"""


def page() -> str:
    """Return the whole page."""
    sessions = read_all()
    lines = [line for session in sessions for line in session.lines if "setup" not in line.marks]
    return "".join(
        [
            HEAD,
            *map(_tool, TOOLS),
            DIFFERENCES.format(count=len(lines)),
            *_rows(lines, "differs"),
            OLDER,
            *_rows(lines, "only ours"),
        ]
    )


def _tool(tool: Tool) -> str:
    module = import_module(tool.module)
    flags: tuple[Flag, ...] = module.FLAGS.rows if hasattr(module, "FLAGS") else ()
    summary = module.FLAGS.summary if hasattr(module, "FLAGS") else module.SUMMARY
    inert = "; ".join(f"`{flag.name}`: {flag.inert}" for flag in flags if flag.inert)
    return f"| `{tool.name}` | {_cell(summary)} | {_cell(inert)} |\n"


def _rows(lines: list[Line], mark: str) -> Iterator[str]:
    seen = set()
    for line in lines:
        if mark in line.marks and line.text not in seen:
            seen.add(line.text)
            yield f"| `{_cell(line.text)}` | {_cell(line.marks[mark])} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = page()
    if parser.parse_args(arguments).check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE} is stale; run: python -m tools.kafka_tools_reference", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/reference/commands.md from the parsers of the commands.

python -m tools.command_reference            write the page
python -m tools.command_reference --check    fail when the page is stale
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tools.generated import ROOT, main

from barnabas.cli.main import COMMANDS, Command, parser

PAGE = ROOT / "docs" / "reference" / "commands.md"
SHARED = ("bootstrap", "timeout", "json")
"""Options of nearly every command: listed last."""

HEAD = """\
<!-- Written by tools/command_reference.py from the commands themselves: do not edit. -->

# Commands

Everything is one command, `barnabas`. Commands that talk to a cluster find it at `--bootstrap`, at
`$BARNABAS_BOOTSTRAP` or at 127.0.0.1:9092. Tables are drawn on a terminal and plain through a pipe;
`--json` prints for machines. Exit codes: 0 done, 1 failed (with one line that says why), 2 misused,
130 interrupted by Ctrl-C, 143 terminated by SIGTERM.

Ctrl-C ends a command in order, with a last line that tells it on stdout or stderr; pressed again
after a second, it ends all but a broker at once. Commands that run until they are stopped (`start`,
`mirror`, `pipeline run`, `demo`) take SIGTERM for the way to stop them, and end with 0.

| command | does |
| --- | --- |
"""


def page() -> str:
    """Return the whole page."""
    rows = "".join(
        f"| [`barnabas {command.name}`](#barnabas-{command.name}) | {command.summary} |\n"
        for command in COMMANDS
    )
    return HEAD + rows + "".join(section for command in COMMANDS for section in sections(command))


def sections(command: Command) -> Iterator[str]:
    """Yield the part about a command, or those about its actions."""
    top = parser(command)
    yield f"\n## barnabas {command.name}\n\n{sentence(command.summary)}\n"
    actions = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not actions or top.get_default("run") is not None:
        yield description(top)
    for action in actions:
        for name, sub in action.choices.items():
            yield f"\n### barnabas {command.name} {name}\n\n{sub.description}\n"
            yield description(sub)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def description(described: argparse.ArgumentParser) -> str:
    """Return usage, options and examples.

    Made from the parser's actions rather than its help text, which each Python words differently.
    """
    actions = [action for action in described._actions if action.dest != "help"]
    places = [place(action) for action in actions if not action.option_strings]
    usage = " ".join([described.prog, *places, "[OPTION]..."])
    rows = [
        f"| `{shown(action)}` | {meaning(action)} |"
        for action in sorted(actions, key=lambda action: action.dest in SHARED)
        if action.option_strings
    ]
    table = "\n".join(["| option | meaning |", "| --- | --- |", *rows])
    examples = (described.epilog or "").rstrip()
    return f"\n```text\n{usage}\n```\n\n{table}\n\n```text\n{examples}\n```\n"


def place(action: argparse.Action) -> str:
    """Return a positional argument as usage shows it."""
    name = str(action.metavar or action.dest)
    return {"+": f"{name}...", "*": f"[{name}]...", "?": f"[{name}]"}.get(str(action.nargs), name)


def shown(action: argparse.Action) -> str:
    """Return an option as it is typed."""
    name = action.option_strings[-1]
    if action.nargs == 0:
        return name
    if action.choices is not None:
        return f"{name} {'/'.join(map(str, action.choices))}"
    if isinstance(action.metavar, tuple):
        return f"{name} {' '.join(action.metavar)}"
    return f"{name} {action.metavar or action.dest.upper()}"


def meaning(action: argparse.Action) -> str:
    """Return an option's help, safe inside a table."""
    return ((action.help or "") % {"default": action.default}).replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(main(PAGE, page(), "tools.command_reference"))

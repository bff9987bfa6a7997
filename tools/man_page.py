"""Write packaging/barnabas.1, the manual page, from the parsers of the commands.

python -m tools.man_page            write the page
python -m tools.man_page --check    fail when the page is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.command_reference import meaning, place, sentence, shown

from barnabas.cli.main import COMMANDS, Command, parser

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "packaging" / "barnabas.1"

HEAD = r""".\" Written by tools/man_page.py from the commands themselves: do not edit.
.TH BARNABAS 1 "" Barnabas "Barnabas Manual"
.SH NAME
barnabas \- a broker for Kafka clients, and the commands of its cluster
.SH SYNOPSIS
.B barnabas
.I COMMAND
.RI [ OPTION ]...
.SH DESCRIPTION
Barnabas is Apache Kafka, rebuilt in Python.
.B barnabas start
runs a broker; the other commands work with any cluster that speaks Kafka's protocol.
They find it at
.BR \-\-bootstrap\-server ,
at
.B $BARNABAS_BOOTSTRAP
or at 127.0.0.1:9092.
Tables are drawn on a terminal and plain through a pipe;
.B \-\-json
prints for machines.
"""

TAIL = r""".SH SIGNALS
SIGINT and SIGTERM end a command in order, with a last line on standard output or error.
A broker hands its partitions to others and closes its logs.
Under a service manager
.RB ( $NOTIFY_SOCKET )
it reports that it is ready, that it is stopping, and signs of life for a watchdog; SIGHUP lets it
read changed certificates.
.SH EXIT STATUS
.TP
.B 0
The command has done what it was asked; a broker, or another command that runs until it is stopped,
was stopped by SIGTERM.
.TP
.B 1
It has failed, and one line on standard error says why.
.TP
.B 2
It was misused.
.TP
.B 130
It was interrupted by Ctrl-C (SIGINT).
.TP
.B 143
It was terminated by SIGTERM.
.SH ENVIRONMENT
.TP
.B BARNABAS_BOOTSTRAP
Brokers to connect to first.
.TP
.B BARNABAS_COMMAND_CONFIG
A properties file with client options, as
.B \-\-command\-config
takes it.
.TP
.B NO_COLOR
No colours, whatever the terminal.
.SH SEE ALSO
The pages in
.I docs/
of the source.
"""


def page() -> str:
    """Return the whole page."""
    listed = "".join(
        f".TP\n.B barnabas {escaped(command.name)}\n{line(sentence(command.summary))}\n"
        for command in COMMANDS
    )
    described = "".join(part for command in COMMANDS for part in sections(command))
    return f"{HEAD}.SH COMMANDS\n{listed}{described}{TAIL}"


def sections(command: Command) -> Iterator[str]:
    """Yield the part about a command, or those about its actions."""
    top = parser(command)
    yield f".SH BARNABAS {escaped(command.name.upper())}\n{line(sentence(command.summary))}\n"
    actions = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not actions or top.get_default("run") is not None:
        yield description(top)
    for action in actions:
        for name, sub in action.choices.items():
            yield f".SS barnabas {escaped(command.name)} {escaped(name)}\n"
            yield f"{line(sub.description or '')}\n"
            yield description(sub)


def description(described: argparse.ArgumentParser) -> str:
    """Return usage, options and examples."""
    actions = [action for action in described._actions if action.dest != "help"]
    places = [place(action) for action in actions if not action.option_strings]
    usage = " ".join([*places, "[OPTION]..."])
    text = f".PP\n.B {escaped(described.prog)}\n{line(usage)}\n"
    for action in actions:
        if action.option_strings:
            text += f".TP\n.B {escaped(shown(action))}\n{line(meaning(action))}\n"
    if described.epilog:
        text += f".PP\n.nf\n.ft CR\n{lines(described.epilog.rstrip())}\n.ft R\n.fi\n"
    return text


def escaped(text: str) -> str:
    """Return text as the formatter has it, also where it would have a meaning of its own."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")


def line(text: str) -> str:
    """Return text as one line that is not a request."""
    shown_text = escaped(text.replace("\\|", "|"))
    return f"\\&{shown_text}" if shown_text[:1] in (".", "'") else shown_text


def lines(text: str) -> str:
    """Return several lines, none of which is a request."""
    return "\n".join(map(line, text.splitlines()))


def main() -> int:
    arguments = argparse.ArgumentParser(description="Write the manual page.")
    arguments.add_argument("--check", action="store_true", help="only compare")
    text = page()
    if not arguments.parse_args().check:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is stale: run python -m tools.man_page", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

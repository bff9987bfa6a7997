"""`barnabas completion`: scripts that complete command lines in bash, zsh and fish.

shtab writes them from the parsers of all commands; imported by this command alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from barnabas.cli.arguments import add_word
from barnabas.model.errors import BarnabasError

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = {
    "bash": """\
  barnabas completion bash > ~/.local/share/bash-completion/completions/barnabas
  source <(barnabas completion bash)""",
    "zsh": """\
  barnabas completion zsh > "${fpath[1]}/_barnabas\"""",
    "fish": """\
  barnabas completion fish > ~/.config/fish/completions/barnabas.fish""",
}
FILES = ("FILE", "PATH", "PLAN")
DIRECTORIES = ("DIR",)


class NoShtab(BarnabasError):
    """The library that writes the scripts is missing."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare an action for each shell."""
    actions = parser.add_subparsers(metavar="SHELL", required=True)
    for shell in SHELLS:
        add_word(
            actions, shell, f"print the completion script of {shell}", _print, EXAMPLES[shell]
        ).set_defaults(shell=shell)


def _print(arguments: argparse.Namespace) -> None:
    print(script(arguments.shell))


def script(shell: str) -> str:
    """Return the script of a shell."""
    try:
        import shtab
    except ImportError as failure:
        raise NoShtab("the package shtab is not installed: pip install shtab") from failure
    parser = whole_parser()
    for action in _every_action(parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in DIRECTORIES:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser of all commands: what `main` has in a table, to read one of them only."""
    from barnabas.cli.kafka.tools import TOOLS
    from barnabas.cli.main import COMMANDS

    parser = argparse.ArgumentParser(prog="barnabas", allow_abbrev=False)
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        made = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
        import_module(command.module).configure(made)
    for tool in TOOLS:
        commands.add_parser(tool.name, help="one of Kafka's tools", add_help=False)
    return parser


def _every_action(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _every_action(sub)

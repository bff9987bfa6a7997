"""`barnabas tools`: launchers for Kafka's tools by their names, so that scripts find them."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from barnabas.cli.arguments import add_word
from barnabas.cli.kafka.tools import TOOLS
from barnabas.model.errors import BarnabasError

MARK = "# A launcher of Barnabas, written by: barnabas tools install"
ENDINGS = ("", ".sh")


class ForeignFile(BarnabasError):
    """A file in the way that is not a launcher."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    install = add_word(
        actions,
        "install",
        "write launchers of Kafka's tools to a directory",
        _install,
        "  barnabas tools install ~/.local/bin\n"
        "  sudo barnabas tools install /opt/kafka/bin --force",
    )
    install.add_argument("directory", metavar="DIR", type=Path)
    install.add_argument(
        "--force", action="store_true", help="replace files that are not launchers of Barnabas"
    )
    list_ = add_word(actions, "list", "list Kafka's tools", _list, "  barnabas tools list")
    list_.add_argument("--json", action="store_true", help="print JSON")


def launcher(name: str) -> str:
    """Return the script that runs a tool with this interpreter."""
    return f'#!/bin/sh\n{MARK}\nexec {shlex.quote(sys.executable)} -m barnabas.cli {name} "$@"\n'


def _install(arguments: argparse.Namespace) -> None:
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    paths = [(tool.name, directory / f"{tool.name}{end}") for tool in TOOLS for end in ENDINGS]
    foreign = [path for _, path in paths if path.exists() and not _is_launcher(path)]
    if foreign and not arguments.force:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise ForeignFile(
            f"{foreign[0]}{more}: not written by barnabas tools install; --force replaces them"
        )
    for name, path in paths:
        _write(path, launcher(name))
    print(f"wrote {len(paths)} launchers of {len(TOOLS)} tools to {directory}")
    if str(directory.resolve()) not in os.environ.get("PATH", "").split(os.pathsep):
        print(f"add it to PATH: export PATH={shlex.quote(str(directory.resolve()))}:$PATH")


def _is_launcher(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False


def _write(path: Path, text: str) -> None:
    """Replace a file at once; if it is a link, the link and not what it points to."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text)
    scratch.chmod(0o755)
    scratch.replace(path)


def _list(arguments: argparse.Namespace) -> None:
    if arguments.json:
        from barnabas.cli.output import print_json

        print_json([tool.name for tool in TOOLS])
        return
    for tool in TOOLS:
        print(tool.name)

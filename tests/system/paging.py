"""What a page shows: its blocks, the commands in them, and a terminal to type these into."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"


def blocks(page: str | Path, kind: str) -> list[str]:
    """Return the blocks of one kind; a page is named by its path, or as one of the how-tos."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (PAGES / page).read_text(), re.M | re.S)


def typed(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block of the kind console, each with what it is shown to print."""
    for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, shown = command.partition("\n")
        yield line, shown


def lines(block: str) -> list[str]:
    """Return the commands of a block of the kind sh; one may go on after a backslash."""
    text = block.replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


def form(text: str) -> list[str]:
    """Return the lines of an answer without what depends on the records.

    That are numbers and their units, ids of topics and clusters, and the widths of columns.
    """
    text = re.sub(r"(?<![\w-])\w[\w-]{21}(?![\w-])", "ID", text.strip())
    text = re.sub(r"(?<=\d )[KMG]iB\b", "B", text)
    lines = [re.sub(r"\d[\d,.]*", "0", line) for line in text.splitlines()]
    lines = [re.sub(r"-{3,}", "---", line.replace("|", " | ")) for line in lines]
    return [" ".join(line.split()) for line in lines]


class Terminal:
    """Types commands in a folder, at a broker that need not be where the page has it.

    A plain `barnabas …` runs in this process, which takes a tenth of the time; all else in a shell.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        capture: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("BARNABAS_BOOTSTRAP", bootstrap)
        places = [str(Path(sys.executable).parent), os.environ["PATH"]]
        monkeypatch.setenv("PATH", os.pathsep.join(places))
        (folder / ".venv").symlink_to(sys.prefix)  # pages about a checkout
        self._bootstrap = bootstrap
        self._capture = capture

    def type(self, command: str, code: int | None = 0) -> str:
        """Return what a command prints, on both of its channels; any code is fine if it is None."""
        command = command.replace("127.0.0.1:9092", self._bootstrap)
        words = shlex.split(command, comments=True)
        if words[0].removeprefix(".venv/bin/") == "barnabas" and not {"|", ">", "<"} & {*words}:
            got = main(words[1:])
            said = self._capture.readouterr()
            printed = said.out + said.err
        else:
            ran = subprocess.run(
                ["sh", "-c", command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=180,
            )
            got, printed = ran.returncode, ran.stdout
        assert code is None or got == code, f"{command}: {printed}"
        return printed

    def follow(self, page: str | Path, replaced: Mapping[str, str] | None = None) -> list[str]:
        """Type what the blocks of a console show, compare the answers, and return the commands."""
        commands = []
        for block in blocks(page, "console"):
            for old, new in (replaced or {}).items():
                block = block.replace(old, new)
            for command, shown in typed(block):
                if command.startswith("cat "):
                    Path(command.removeprefix("cat ")).write_text(shown)
                elif not command.startswith(("pip ", "python ")):
                    assert form(self.type(command)) == form(shown), command
                    commands.append(command)
        return commands

"""The documents as texts: links lead somewhere, and commands are ones that exist."""

from __future__ import annotations

import os
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from barnabas.cli.kafka.tools import tool_named
from barnabas.cli.main import COMMANDS, parser

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BEFORE = {"sh": "", "console": r"\$ ", "text": "  "}
"""What stands before a command, by the kind of block; a text is the examples of a help text."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(page: str) -> list[str]:
    """Return the calls of our command in a page, without what the shell does with them."""
    found = []
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S):
        if kind in BEFORE and (kind != "text" or block.startswith(("examples:", "formats:"))):
            joined = re.sub(r" *\\\n *", " ", block)
            called = rf"^{BEFORE[kind]}(?:.* \| )?(?:\.venv/bin/)?(barnabas .*)$"
            found += re.findall(called, joined, re.M)
    return [re.sub(r" > \S+$", "", line) for line in found]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    for link in links:
        if not link.startswith("https://"):
            place, _, anchor = link.partition("#")
            target = page.parent / place if place else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    """A page names a file by its path, or by the end of it where the folder is clear."""
    roots = ("src", "tests", "docs", "bench", "tools")
    files = [f"/{name(path)}" for root in roots for path in (ROOT / root).rglob("*.py")]
    assert len(files) > 1000, "the check has lost its files"
    for named in re.findall(r"`([\w./-]+\.py)`", page.read_text()):
        assert any(path.endswith(f"/{named}") for path in files) or (ROOT / named).exists(), named


def test_every_page_is_found_from_the_readme() -> None:
    start = ROOT / "README.md"
    known, left = {start}, [start]
    while left:
        page = left.pop()
        for link in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text()):
            target = Path(os.path.normpath(page.parent / link))
            if target not in known:
                known.add(target)
                left.append(target)
    assert set(DOCUMENTS) <= known


@pytest.mark.parametrize(
    "page", [page for page in DOCUMENTS if commands(page.read_text())], ids=name
)
def test_every_command_can_be_typed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parsers take it: no option of a page is misspelt or gone."""
    known = {command.name: command for command in COMMANDS}
    for line in commands(page.read_text()):
        assert not re.search(r'"[^"]*`', line), "a shell would run what stands between backticks"
        _, first, *rest = shlex.split(line, comments=True)
        if (tool := tool_named(first)) is not None:
            import_module(tool.module).FLAGS.parse(rest)
            continue
        try:
            parser(known[first]).parse_args(rest)
        except SystemExit:
            pytest.fail(f"{line}: {capsys.readouterr().err}")


def test_commands_are_found_in_all_kinds_of_blocks() -> None:
    text = "\n".join(
        [
            "```sh\nprintf 'a\\n' | barnabas produce t   # why\n```",
            "```console\n$ barnabas groups list > file\nbarnabas groups: no\n```",
            "```text\nexamples:\n  barnabas mirror \\\n      --source a:1\n```",
            "```text\nbarnabas topics ACTION\n```",
        ]
    )
    assert commands(text) == [
        "barnabas produce t   # why",
        "barnabas groups list",
        "barnabas mirror --source a:1",
    ]

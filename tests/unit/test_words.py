"""The English of code and pages: phrases of `docs/design/words.md` that must not come back."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".md"}
SKIPPED = {"docs/design/words.md", "src/barnabas/wire/messages"}

PATTERNS = (
    r"\btell whether\b",
    r"\bany more\b",
    r"\bfor ever\b",
    r"\banew\b",
    r"\bwhoever\b",
    r"\bsomebody\b",
    r"\b(?:hears?|heard) of\b",
    r"\ba text\b",
    r"\bby a mistake\b",
    r"\bin vain\b",
    r"\bnot to be\b",
    r"\b(?:brokers|members) come: ",
    r"\bpassed over\b",
    r"\bleft alone\b",
    r"\bunder way\b",
    r"\bspeaks against\b",
    r"\bmakes no sense\b",
    r"\b(?:is|are) no more\b",
    r"\bthe same again\b",
    r"\bmade again\b",
    r"\bshuts? out\b",
    r"\bwritten down\b",
)
PHRASE = re.compile("|".join(PATTERNS), re.IGNORECASE)

LEFT: dict[str, int] = {}
"""How often the phrases may still occur, by folder; none in a folder that is not listed.

A number may only go down. Where a file moves to another folder, its share moves with it.
"""


def sources() -> list[Path]:
    """Return the files that people read: code and pages, without what is kept as history."""
    found = [ROOT / "README.md"]
    for root in ("src", "docs"):
        found += (path for path in (ROOT / root).rglob("*") if path.suffix in SUFFIXES)
    return sorted(path for path in found if not name(path).startswith(tuple(SKIPPED)))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def folder(path: Path) -> str:
    """Return the folder that a file is counted in: a package of ours, or a part of the pages."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "src":
        return "/".join(parts[:3])
    return "/".join(parts[:2][: len(parts) - 1]) or "."


def phrases(text: str) -> list[str]:
    """Return the phrases in a text, also those that a line break divides."""
    joined = re.sub(r"\s+(?:# )?", " ", text)
    return PHRASE.findall(joined)


def test_no_old_phrase_comes_back() -> None:
    files = sources()
    found: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    for path in files:
        listed = phrases(path.read_text(encoding="utf-8"))
        if listed:
            found[folder(path)] += len(listed)
            where.setdefault(folder(path), []).append(f"{name(path)}: {', '.join(listed)}")
    assert len(files) > 500, "the check has lost its files"
    assert len({folder(path) for path in files}) > 30, "the check has lost its folders"
    grown = {each: count for each, count in found.items() if count > LEFT.get(each, 0)}
    told = "\n".join(line for each in sorted(grown) for line in where[each])
    assert not grown, f"see docs/design/words.md: {grown}\n{told}"


def test_every_allowance_is_for_a_folder_that_exists() -> None:
    assert LEFT.keys() <= {folder(path) for path in sources()}


@pytest.mark.parametrize(
    "line",
    [
        '"""Tell whether a follower gets nothing for now."""',
        'logger.info("brokers come: %s", come)',
        'logger.error("%s on %d is %s, not to be %s", …)',
        'raise TypeError(f"topic {topic!r} is not a text")',
        "The loop has ended by a mistake.",
        "# it is not waited for any\n    # more",
    ],
)
def test_the_check_notices_what_it_is_for(line: str) -> None:
    assert phrases(line)


@pytest.mark.parametrize(
    "line", ['"""Return whether the follower is throttled."""', "if any: more()", "come: int"]
)
def test_the_check_lets_plain_words_pass(line: str) -> None:
    assert not phrases(line)

"""Write tests/test_map.txt: for each module without a test of its own, the test that covers it.

python tools/test_map.py            keep what still holds, propose the rest, write the file
python tools/test_map.py --check    fail when a module is missing, or its test does not name it

A module `src/barnabas/a/b.py` has a test of its own in `tests/unit/a/test_b.py`. What cannot go
wrong needs none: packages, wire messages, modules of declarations only. A proposal is the test that
names the module or a class of it most often, the nearest folder first; where none does, the one
that names a module that imports it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "barnabas"
TESTS = ROOT / "tests"
TABLE = TESTS / "test_map.txt"
NOBODY = "-"
EXPORT = re.compile(r"^    \"([A-Z]\w*)\"", re.MULTILINE)
CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)
HEAD = """\
# Modules without a test of their own, and the test that covers each ("-": none names it).
# Written by tools/test_map.py, which keeps what still holds; see there.
"""


WORD = re.compile(r"\bbarnabas(?:\.\w+)+|\b[A-Z]\w*[a-z]\w*")
IMPORT = re.compile(r"^ *from (barnabas(?:\.\w+)*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def tests() -> dict[str, Counter[str]]:
    """Return the modules and classes that each test names, and how often."""
    return {
        str(path.relative_to(ROOT)): Counter(
            name
            for word in WORD.findall(path.read_text())
            for name in (word, word.rpartition(".")[0])
        )
        for path in sorted(TESTS.rglob("test_*.py"))
    }


@cache
def names(module: str) -> frozenset[str]:
    """Return how a test may name a module: by its path, or by a class of it."""
    classes = CLASS.findall((SOURCES / module).read_text())
    path = Path(module)
    if path.parent.name == "handlers":  # is reached by a request
        classes.append("".join(map(str.capitalize, path.stem.split("_"))) + "Request")
    if path.name == "__init__.py":
        return frozenset({dotted(str(path.parent)), *EXPORT.findall((SOURCES / path).read_text())})
    return frozenset({dotted(module), *classes})


def dotted(module: str) -> str:
    """Return the name under which a module is imported."""
    return ".".join(("barnabas", *Path(module).with_suffix("").parts))


@cache
def importers() -> dict[str, list[str]]:
    """Return the modules that import each module."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        module = str(path.relative_to(SOURCES))
        for source, imported in IMPORT.findall(path.read_text()):
            submodules = (f"{source}.{name}" for name in re.findall(r"\w+", imported))
            for name in (source, *submodules):
                found.setdefault(name, []).append(module)
    return found


def untested() -> list[str]:
    """Return the modules that have no test of their own and need one."""
    modules = (str(path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.py")))
    return [
        module for module in modules if not twin(module).exists() and not _declares_only(module)
    ]


def twin(module: str) -> Path:
    """Return where the test of a module is, if it has one of its own."""
    path = Path(module)
    return TESTS / "unit" / path.parent / f"test_{path.stem.strip('_')}.py"


def _declares_only(module: str) -> bool:
    """Return whether a module has nothing that runs: no function longer than a statement."""
    path = Path(module)
    if path.name.startswith("__") or path.parts[:2] == ("wire", "messages"):
        return True
    functions = (
        node
        for node in ast.walk(ast.parse((SOURCES / module).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return all(len(_statements(function)) <= 1 for function in functions)


def _statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    return [
        each
        for each in function.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]


def mentions(test: str, module: str) -> int:
    """Return how often a test names a module, or else the modules that import it."""
    words = tests().get(test, Counter())
    if found := sum(words[name] for name in names(module)):
        return found + 1000
    users = importers().get(dotted(module), ())
    own = sum(test == str(twin(each).relative_to(ROOT)) for each in users)
    return own + sum(words[name] for each in users for name in names(each))


def proposal(module: str) -> str:
    """Return the test that probably covers a module."""
    folders = Path(module).parts[:-1]

    def rank(test: str) -> tuple[bool, bool, int, int]:
        parts = Path(test).parts[2:] if test.startswith("tests/unit/") else ()
        near = sum(a == b for a, b in zip(parts, folders, strict=False))
        count = mentions(test, module)
        return count > 1000, tests()[test][dotted(module)] > 0, near, count

    found = [test for test in tests() if mentions(test, module)]
    return max(found, key=rank, default=NOBODY)


def read() -> dict[str, str]:
    """Return the table as it is."""
    if not TABLE.exists():
        return {}
    rows = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


def written() -> str:
    """Return the table as it should be: rows that still hold stay."""
    known = read()
    rows = {}
    for module in untested():
        test = known.get(module, NOBODY)
        rows[module] = test if mentions(test, module) else proposal(module)
    width = max(map(len, rows))
    return HEAD + "".join(f"{module.ljust(width)}  {test}\n" for module, test in rows.items())


def complaints() -> list[str]:
    """Return what is wrong with the table."""
    known, needed = read(), untested()
    found = [f"{module}: has no test, and no row" for module in needed if module not in known]
    found += [f"{module}: needs no row" for module in known if module not in needed]
    for module, test in known.items():
        if module in needed and test != NOBODY and not mentions(test, module):
            found.append(f"{module}: {test} does not name it")
    return found


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        wrong = complaints()
        for each in wrong:
            print(each, file=sys.stderr)
        return int(bool(wrong))
    TABLE.write_text(written())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

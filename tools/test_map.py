"""Write tests/test_map.txt: for each module without a test of its own, the test that covers it.

python tools/test_map.py                    drop rows that are no longer needed
python tools/test_map.py --measure TESTS    run these tests; renew the rows that name one, or none
python tools/test_map.py --check            fail when a module has no row, or a row no test

A module `src/barnabas/a/b.py` has a test of its own in `tests/unit/a/test_b.py`. What cannot go
wrong needs none: packages, wire messages, modules of declarations only. A row is measured: its test
runs more functions of the module than others do, or nearly as many from a folder that is nearer.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "barnabas"
TESTS = ROOT / "tests"
TABLE = TESTS / "test_map.txt"
NEARLY = 0.8
"""A nearer test is taken if it runs so much of what the best one runs."""
HEAD = """\
# Modules without a test of their own, and the test that covers each.
# Measured and written by tools/test_map.py; see there.
"""

Reached = Mapping[str, Mapping[str, int]]
"""By module, by test: how many of the module's functions the test has run."""


def untested() -> list[str]:
    """Return the modules that have no test of their own and need one."""
    modules = (str(path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.py")))
    return [
        module for module in modules if not twin(module).exists() and not _declares_only(module)
    ]


def twin(module: str) -> Path:
    """Return where the test of a module is, if it has one of its own."""
    path = Path(module)
    folders = [each for each in path.parent.parts if each != "python"]  # whose twins are compiled
    return TESTS.joinpath("unit", *folders, f"test_{path.stem.strip('_')}.py")


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


class Measurement:
    """A plugin of pytest that sees which functions of ours each test file runs."""

    def __init__(self) -> None:
        self._seen: dict[str, set[CodeType]] = defaultdict(set)
        self._running: set[CodeType] = set()
        """What the present test file has run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._running = self._seen[str(item.path.relative_to(ROOT))]
        threading.setprofile(self._look)
        sys.setprofile(self._look)

    def pytest_sessionfinish(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _look(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._running.add(frame.f_code)

    def reached(self) -> Reached:
        """Return what the tests have run."""
        found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        prefix = f"{SOURCES}/"
        for test, functions in self._seen.items():
            for code in functions:
                if code.co_filename.startswith(prefix) and code.co_flags & CO_OPTIMIZED:
                    found[code.co_filename.removeprefix(prefix)][test] += 1
        return found


def covering(module: str, counts: Mapping[str, int]) -> str:
    """Return the test that covers a module, of those that run something of it."""
    folders = Path(module).parts[:-1]
    best = max(counts.values())

    def rank(test: str) -> tuple[int, int]:
        parts = Path(test).parts[2:] if test.startswith("tests/unit/") else ()
        near = sum(a == b for a, b in zip(parts, folders, strict=False))
        return near, counts[test]

    return max((test for test, count in counts.items() if count >= NEARLY * best), key=rank)


def read() -> dict[str, str]:
    """Return the table as it is."""
    if not TABLE.exists():
        return {}
    rows = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


def written(reached: Reached) -> str:
    """Return the table; rows whose tests were not compared stay."""
    known = read()
    compared = {test for counts in reached.values() for test in counts}
    rows = {}
    for module in untested():
        test = known.get(module)
        if module in reached and (test is None or test in compared):
            test = covering(module, reached[module])
        if test is not None:
            rows[module] = test
    width = max(map(len, rows))
    return HEAD + "".join(f"{module.ljust(width)}  {test}\n" for module, test in rows.items())


def complaints() -> list[str]:
    """Return what is wrong with the table."""
    known, needed = read(), untested()
    found = [f"{module}: has no test, and no row" for module in needed if module not in known]
    found += [f"{module}: needs no row" for module in known if module not in needed]
    found += [f"{module}: {test} does not exist" for module, test in known.items() if gone(test)]
    return found


def gone(test: str) -> bool:
    """Return whether there is no such test."""
    return not (ROOT / test).is_file()


def main(arguments: list[str]) -> int:
    reached: Reached = {}
    match arguments:
        case ["--check"]:
            wrong = complaints()
            for each in wrong:
                print(each, file=sys.stderr)
            return int(bool(wrong))
        case ["--measure", *tests]:
            measurement = Measurement()
            failed = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[measurement])
            if failed:
                return int(failed)
            reached = measurement.reached()
    TABLE.write_text(written(reached))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

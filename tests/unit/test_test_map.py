"""Every module has a test of its own, or a row that says which test covers it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from tools import test_map

from barnabas.model.patterns import compile_pattern

WITHOUT_A_TWIN_MAX = 173
"""Modules without a test of their own. Give a new module a test instead of raising this.

Handlers are not counted: each is run by the generated tests of served APIs and authorization, and
those of one subject share a test. Nor are interfaces of others: tests/compat runs the same programs
on both libraries, tests/interop the same command lines with both sets of tools.
"""
NOT_COUNTED = ("broker/handlers/", "compat/", "cli/kafka/")


def test_every_module_has_a_test_or_a_row() -> None:
    assert test_map.complaints() == [], "write a test, or see tools/test_map.py --measure"
    counted = [module for module in test_map.read() if not module.startswith(NOT_COUNTED)]
    assert len(counted) <= WITHOUT_A_TWIN_MAX


def test_what_is_wrong_with_the_table_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(test_map, "TABLE", tmp_path / "table.txt")
    monkeypatch.setattr(
        test_map, "untested", lambda: ["model/errors.py", "model/ids.py", "model/patterns.py"]
    )
    (tmp_path / "table.txt").write_text(
        "# a comment\n"
        "model/ids.py       tests/unit/model/test_gone.py\n"
        "model/patterns.py  tests/unit/model/test_patterns.py\n"
        "model/gone.py      tests/unit/model/test_patterns.py\n"
    )
    wrong = ["model/errors.py: has no test, and no row", "model/gone.py: needs no row"]
    wrong.append("model/ids.py: tests/unit/model/test_gone.py does not exist")
    assert test_map.complaints() == wrong


@pytest.mark.parametrize(
    ("module", "declares"),
    [
        ("model/isolation.py", True),
        ("model/__init__.py", True),
        ("wire/messages/fetch.py", True),
        ("model/patterns.py", False),
    ],
)
def test_modules_that_only_declare_need_no_test(module: str, declares: bool) -> None:
    assert test_map._declares_only(module) is declares


def test_the_best_test_counts_unless_a_nearer_one_is_nearly_as_good() -> None:
    far, near = "tests/unit/cli/test_export.py", "tests/unit/archive/test_output.py"
    assert test_map.covering("archive/exporting.py", {far: 10, near: 3}) == far
    assert test_map.covering("archive/exporting.py", {far: 10, near: 8}) == near
    assert test_map.covering("archive/exporting.py", {"tests/system/test_x.py": 9, near: 8}) == near


def test_what_a_test_runs_is_measured() -> None:
    measurement = test_map.Measurement()
    measurement._running = measurement._seen["tests/unit/model/test_patterns.py"]

    def measured() -> None:
        sys.setprofile(measurement._look)
        compile_pattern("a+")
        sys.setprofile(None)

    # On a thread of its own: no other test has changed what is traced there.
    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    assert measurement.reached() == {"model/patterns.py": {"tests/unit/model/test_patterns.py": 1}}

"""Every module has a test of its own, or a row that says which test covers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import test_map

NAMED_BY_NO_TEST_MAX = 3
"""Rows without a test. Give a new module a test instead of raising this."""


def test_every_module_has_a_test_or_a_row() -> None:
    assert test_map.complaints() == [], "run tools/test_map.py, and look at what it proposes"
    unnamed = [module for module, test in test_map.read().items() if test == test_map.NOBODY]
    assert len(unnamed) <= NAMED_BY_NO_TEST_MAX, unnamed


def test_what_is_wrong_with_the_table_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(test_map, "TABLE", tmp_path / "table.txt")
    monkeypatch.setattr(
        test_map, "untested", lambda: ["model/errors.py", "model/ids.py", "model/patterns.py"]
    )
    (tmp_path / "table.txt").write_text(
        "# a comment\n"
        "model/ids.py       tests/unit/model/test_patterns.py\n"
        "model/patterns.py  tests/unit/model/test_patterns.py\n"
        "model/gone.py      tests/unit/model/test_patterns.py\n"
    )
    wrong = ["model/errors.py: has no test, and no row", "model/gone.py: needs no row"]
    wrong.append("model/ids.py: tests/unit/model/test_patterns.py does not name it")
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

"""The examples of tests against a broker: each passes in another project, and a page shows it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.system, pytest.mark.timeout(700)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "testing").glob("test_*.py"))
PAGE = ROOT / "docs" / "how-to" / "test-with-barnabas.md"
PASSED = {
    "test_asyncio": 1,
    "test_container": 1,
    "test_orders": 3,
    "test_spark_job": 1,
    "test_unittest": 2,
}
ASYNCIO = ROOT / ".deps" / "pytest-asyncio"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_passes(
    example: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["-p", "no:hypothesispytest"]
    if example.stem == "test_asyncio":
        if not ASYNCIO.is_dir():
            pytest.skip("pytest-asyncio is not there (make deps fetches it)")
        path = os.pathsep.join([str(ASYNCIO), os.environ.get("PYTHONPATH", "")])
        monkeypatch.setenv("PYTHONPATH", path)
    if example.stem == "test_spark_job":
        pytest.importorskip("pyspark")
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    (pytester.path / example.name).write_text(example.read_text())
    pytester.runpytest_subprocess(*options, timeout=600).assert_outcomes(
        passed=PASSED[example.stem]
    )


def test_unittest_runs_its_example_alone(pytester: pytest.Pytester) -> None:
    example = next(path for path in EXAMPLES if path.stem == "test_unittest")
    ran = pytester.run(sys.executable, "-W", "error", example, timeout=120)
    assert ran.ret == 0
    ran.stderr.fnmatch_lines(["Ran 2 tests in *", "OK"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_shows_the_example_as_it_is(example: Path) -> None:
    assert f"```python\n{example.read_text()}```" in PAGE.read_text()

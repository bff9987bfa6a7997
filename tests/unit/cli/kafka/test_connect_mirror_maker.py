"""`connect-mirror-maker`: wrong command lines; a flow is copied by tests/system."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def mirror(capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("connect-mirror-maker.sh", None, capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(
        f"clusters = A, B\nA.bootstrap.servers = {NOWHERE}\nB.bootstrap.servers = {NOWHERE}\n"
        "A->B.enabled = true\nB->A.enabled = true\ntasks.max = 3\n"
    )
    return path


def test_a_cluster_that_does_not_respond_is_named(mirror: RunTool, file: Path) -> None:
    run = mirror(str(file), "--clusters", "B")
    assert (run.code, run.out) == (1, "")
    ignored, started, failed = run.err.splitlines()
    assert ignored == "connect-mirror-maker: no effect: tasks.max"
    assert started == "connect-mirror-maker A->B: copying topics to A.* on B"
    assert failed.startswith(f"Error: --source {NOWHERE}: no broker responds")
    assert failed.endswith("--source is A in the file, --target is B")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "USAGE: connect-mirror-maker mm2.properties"),
        (("none.properties",), "none.properties: no such file or directory"),
        (("--clusters", "C", "FILE"), "FILE: --clusters C: not one of clusters = A, B"),
        (("--cluster", "B", "FILE", "more"), "more: no such file or directory"),
    ],
)
def test_wrong_command_lines(
    mirror: RunTool, file: Path, words: tuple[str, ...], text: str
) -> None:
    run = mirror(*(word.replace("FILE", str(file)) for word in words))
    assert (run.code, run.out) == (1, "")
    assert text.replace("FILE", str(file)) in run.err.splitlines()[-1]

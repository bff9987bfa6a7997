"""Processes of the demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.demo.child import Child
from barnabas.pipeline.errors import PipelineError


def test_what_a_command_prints_is_read(tmp_path: Path) -> None:
    child = Child(["--version"], tmp_path / "log")
    try:
        assert child.wait_for("barnabas", 30).startswith("barnabas ")
    finally:
        child.stop()
    assert not child.is_running
    assert child.failure is None


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    child = Child(["nonsense"], tmp_path / "log")
    try:
        with pytest.raises(
            PipelineError, match=r"barnabas nonsense exited with 2: .*unknown command"
        ):
            child.wait_for("ready", 30)
    finally:
        child.stop()

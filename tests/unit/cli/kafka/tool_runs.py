"""Running one of Kafka's tools in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.cli.conftest import Run

from barnabas.cli.main import main

RunTool = Callable[..., Run]


def runner(tool: str, bootstrap: str | None, capsys: pytest.CaptureFixture[str]) -> RunTool:
    """Return how to run a tool, pointed at a broker if there is one."""
    where = () if bootstrap is None else ("--bootstrap-server", bootstrap)

    def run(*words: str) -> Run:
        code = main((tool, *where, *words))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Run(code, captured.out, captured.err)

    return run

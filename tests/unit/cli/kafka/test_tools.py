from __future__ import annotations

import pytest

from barnabas.cli.kafka.tools import TOOLS, tool_named


def test_names_are_found_with_and_without_the_ending() -> None:
    for tool in TOOLS:
        assert tool_named(tool.name) is tool
        assert tool_named(f"{tool.name}.sh") is tool


@pytest.mark.parametrize("name", ["kafka-topic", "topics", ".sh", "kafka-topics.bat"])
def test_other_names_are_not(name: str) -> None:
    assert tool_named(name) is None

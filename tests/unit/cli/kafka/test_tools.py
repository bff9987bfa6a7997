from __future__ import annotations

import pytest

from barnabas.cli.kafka.tools import TOOLS, nearest_name, tool_named
from barnabas.cli.main import main


def test_names_are_found_with_and_without_the_ending() -> None:
    for tool in TOOLS:
        assert tool_named(tool.name) is tool
        assert tool_named(f"{tool.name}.sh") is tool


@pytest.mark.parametrize("name", ["kafka-topic", "topics", ".sh", "kafka-topics.bat"])
def test_other_names_are_not(name: str) -> None:
    assert tool_named(name) is None


def test_a_misspelt_name_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert nearest_name("kafka-tpics") == "kafka-topics"
    assert nearest_name("kafka-perferred-replica-election.sh") == (
        "kafka-preferred-replica-election.sh"
    )
    assert nearest_name("connect-standalone-with-a-long-name") is None
    assert main(["kafka-topcs.sh", "--list"]) == 2
    assert capsys.readouterr().err == (
        "barnabas: no tool 'kafka-topcs.sh'; did you mean kafka-topics.sh? "
        "(see: barnabas tools list)\n"
    )

"""`kafka-streams-application-reset`: offsets go back, internal topics are deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas, Produce
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def reset(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-streams-application-reset.sh", barnabas_bootstrap, capsys)


def test_an_application_begins_again(
    reset: RunTool, barnabas: Barnabas, topic: str, produce: Produce, tmp_path: Path
) -> None:
    assert produce(topic, "a\nb\nc\n", "--partition", "0").code == 0
    app = f"{topic}-app"
    store = f"{app}-store-changelog"
    assert barnabas("topics", "create", store).code == 0
    words = ("--application-id", app, "--input-topics", topic)
    dry = reset(*words, "--to-offset", "2", "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    lines = dry.out.splitlines()
    assert lines[0].startswith("----Dry run displays the actions")
    assert f"Reset-offsets for input topics [{topic}]" in lines
    assert f"Topic: {topic} Partition: 0 Offset: 2" in lines
    assert f"Deleting inferred internal topics [{store}]" in lines
    assert barnabas("groups", "describe", app).code == 1
    assert store in barnabas("topics", "list").out
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,1\n{topic},1,0\n{topic},2,0\n")
    run = reset(*words, "--from-file", str(file))
    assert f"Topic: {topic} Partition: 0 Offset: 1" in run.out.splitlines()
    assert store not in barnabas("topics", "list").out
    assert barnabas("groups", "describe", app).code == 0
    [group] = json.loads(barnabas("groups", "describe", app, "--json").out)
    assert {each["partition"]: each["committed"] for each in group["offsets"]} == {0: 1, 1: 0, 2: 0}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), 'Missing required argument "[application-id]"'),
        (("--to-latest", "--to-earliest"), "can't be used with option"),
        (("--from-file", "none.csv"), "none.csv"),
        (("--internal-topics", "other"), "Invalid topic specified in the --internal-topics"),
    ],
)
def test_misuse(reset: RunTool, topic: str, words: tuple[str, ...], text: str) -> None:
    app = ("--application-id", "none-such", "--input-topics", topic)
    run = reset(*app, *words) if words else reset()
    assert run.code == 1
    assert text in run.err
    assert len(run.err.splitlines()) == 1

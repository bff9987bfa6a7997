"""`barnabas configs` against a real broker."""

from __future__ import annotations

import json
from typing import Any


def test_options_are_set_appended_subtracted_and_deleted(barnabas: Any, topic: str) -> None:
    def own() -> dict[str, str]:
        described = barnabas("configs", "describe", "--topic", topic, "--json")
        assert described.code == 0, described.err
        entries = json.loads(described.out)
        assert all(entry["source"] == "topic" for entry in entries)
        return {entry["name"]: entry["value"] for entry in entries}

    assert own() == {}
    run = barnabas(
        *("configs", "alter", "--topic", topic),
        *("--set", "retention.ms=5000", "--append", "cleanup.policy=compact"),
    )
    assert run == (0, f"options of topic {topic} are changed\n", "")
    assert own() == {"retention.ms": "5000", "cleanup.policy": "delete,compact"}
    barnabas(
        *("configs", "alter", "--topic", topic),
        *("--delete", "retention.ms", "--subtract", "cleanup.policy=delete"),
    )
    assert own() == {"cleanup.policy": "compact"}


def test_a_dry_run_changes_nothing(barnabas: Any, topic: str) -> None:
    run = barnabas("configs", "alter", "--topic", topic, "--set", "retention.ms=1", "--dry-run")
    assert run == (0, f"options of topic {topic} would be changed\n", "")
    assert json.loads(barnabas("configs", "describe", "--topic", topic, "--json").out) == []


def test_named_options_are_shown_even_with_their_defaults(barnabas: Any, topic: str) -> None:
    run = barnabas("configs", "describe", "--topic", topic, "segment.bytes")
    assert run.code == 0
    header, line = run.out.splitlines()
    assert header.split() == ["option", "value", "source"]
    assert line.split() == ["segment.bytes", "1073741824", "default"]


def test_a_broker_tells_its_file_options_and_all_with_all(barnabas: Any) -> None:
    own = json.loads(barnabas("configs", "describe", "--broker", "0", "--json").out)
    everything = json.loads(barnabas("configs", "describe", "--broker", "0", "--all", "--json").out)
    assert "log.dirs" in {entry["name"] for entry in own}
    assert len(everything) > len(own)


def test_what_is_refused_is_named(barnabas: Any, topic: str) -> None:
    run = barnabas("configs", "alter", "--topic", topic, "--set", "no.such.option=1")
    assert run.code == 1
    assert "no.such.option" in run.err
    assert run.err.count("\n") == 1
    assert barnabas("configs", "alter", "--topic", topic).err.startswith(
        "barnabas configs: nothing to change; use --set"
    )
    assert barnabas("configs", "describe").code == 2
    missing = barnabas("configs", "describe", "--broker", "77")
    assert "broker 77 is not in the cluster; its brokers are [0]" in missing.err


def test_levels_of_loggers_are_shown_and_set(barnabas: Any) -> None:
    def level() -> str:
        described = barnabas("configs", "describe", "--broker-loggers", "0", "--json")
        assert described.code == 0, described.err
        entries = {entry["name"]: entry for entry in json.loads(described.out)}
        assert entries["root"]["source"] == "broker_logger"
        value: str = entries["barnabas.console"]["value"]
        return value

    before = level()
    alter = ("configs", "alter", "--broker-loggers", "0")
    run = barnabas(*alter, "--set", "barnabas.console=TRACE")
    assert run == (0, "options of broker 0's loggers are changed\n", "")
    assert level() == "TRACE"
    assert barnabas(*alter, "--delete", "barnabas.console").code == 0
    assert level() == before
    run = barnabas(*alter, "--set", "barnabas.consol=TRACE")
    assert run.code == 1
    assert "Logger barnabas.consol does not exist!" in run.err

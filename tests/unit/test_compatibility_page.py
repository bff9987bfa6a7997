"""The page of compatibility says what the results say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import compatibility
from tools.compatibility import Result, page

LOCK = "aiokafka==0.14.0\nconfluent-kafka==2.16.1\nkafka-python==3.0.12\n"
TESTS = [
    f"test_{stem}.py"
    for stem in (
        *("confluent_kafka", "groups_confluent_kafka", "kafka_python", "kafka_python_2_0_2"),
        *("aiokafka", "kafkajs", "kcat"),
    )
]


def test_results_are_kept_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "RESULTS", tmp_path / "results")
    Result("b", "2", "Go", "Copied a | b.", "test_copy[b]").write("passed")
    Result("A", "1", "Go", "Counted.", "test_count").write("failed")
    Result("A", "1", "Go", "Counted.", "test_count").write("missing: KIP-1")
    found = sorted((tmp_path / "results").iterdir())
    assert [path.name for path in found] == ["copy-b.json", "count.json"]
    text = page((json.loads(path.read_text()) for path in found), LOCK, TESTS)
    assert (
        "## Go\n\n"
        "| client | version | what was run | result |\n"
        "| --- | --- | --- | --- |\n"
        "| A | 1 | Counted. | missing: KIP-1 |\n"
        "| b | 2 | Copied a \\| b. | passed |\n"
    ) in text
    tests = ", ".join(f"[{name}](../tests/compat/{name})" for name in TESTS[:2])
    assert f"| confluent-kafka (librdkafka) | 2.16.1 | {tests} |\n" in text


def test_a_client_of_the_suite_without_tests_is_noticed() -> None:
    with pytest.raises(AssertionError, match="no test in tests/compat is about kcat"):
        page([], LOCK, TESTS[:-1])

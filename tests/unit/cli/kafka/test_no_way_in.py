"""Every tool where nobody listens, with a wrong password, without its file: one line that says so.

The exit code is 1; Kafka's own kafka-consumer-groups says what has failed, and exits with 0.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.unit.cli.kafka.tool_runs import runner
from tests.unit.cli.secured import Secured

JSON = '{"partitions":[{"topic":"t","partition":0,"offset":1,"replicas":[0]}],"version":1}'
LINES = (
    "kafka-acls --list --bootstrap-server HERE --command-config FILE",
    "kafka-broker-api-versions --bootstrap-server HERE --command-config FILE",
    "kafka-client-metrics --list --bootstrap-server HERE --command-config FILE",
    "kafka-cluster cluster-id --bootstrap-server HERE --config FILE",
    "kafka-configs --describe --topic t --bootstrap-server HERE --command-config FILE",
    "kafka-console-consumer --topic t --bootstrap-server HERE --consumer.config FILE",
    "kafka-console-producer --topic t --bootstrap-server HERE --producer.config FILE",
    "kafka-consumer-groups --list --bootstrap-server HERE --command-config FILE",
    "kafka-consumer-perf-test --topic t --messages 1 --hide-header --bootstrap-server HERE "
    "--consumer.config FILE",
    "kafka-delegation-tokens --describe --bootstrap-server HERE --command-config FILE",
    "kafka-delete-records --offset-json-file JSON --bootstrap-server HERE --command-config FILE",
    "kafka-e2e-latency HERE t 1 all 64 FILE",
    "kafka-features describe --bootstrap-server HERE --command-config FILE",
    "kafka-get-offsets --topic t --bootstrap-server HERE --command-config FILE",
    "kafka-leader-election --election-type preferred --all-topic-partitions "
    "--bootstrap-server HERE --admin.config FILE",
    "kafka-log-dirs --describe --bootstrap-server HERE --command-config FILE",
    "kafka-preferred-replica-election --bootstrap-server HERE --admin.config FILE",
    "kafka-producer-perf-test --topic t --num-records 1 --record-size 1 --throughput -1 "
    "--bootstrap-server HERE --producer.config FILE",
    "kafka-reassign-partitions --list --bootstrap-server HERE --command-config FILE",
    "kafka-streams-application-reset --application-id a --bootstrap-server HERE "
    "--command-config FILE",
    "kafka-topics --list --bootstrap-server HERE --command-config FILE",
    "kafka-transactions --bootstrap-server HERE --command-config FILE list",
    "kafka-verifiable-consumer --topic t --group-id g --bootstrap-server HERE "
    "--consumer.config FILE",
    "kafka-verifiable-producer --topic t --bootstrap-server HERE --producer.config FILE",
)
EARLIER = (
    "This tool is deprecated.",
    "Calling describe token operation",
    "Processed a total of 0 messages",
)
"""Lines beside the failure."""


@pytest.fixture(autouse=True)
def _input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"line\n")))


def failure_of(
    capsys: pytest.CaptureFixture[str], line: str, folder: Path, here: str, file: str
) -> str:
    """Return the line with which a tool fails, and its next step."""
    (folder / "plan.json").write_text(JSON)
    places = {"HERE": here, "FILE": file, "JSON": str(folder / "plan.json")}
    tool, *words = (places.get(word, word) for word in line.split())
    run = runner(tool, None, capsys)(*words)
    assert run.code == (0 if tool == "kafka-consumer-groups" else 1)
    lines = filter(None, (run.out + run.err).splitlines())
    said = [each for each in lines if not each.startswith(EARLIER)]
    assert 1 <= len(said) <= 2, said  # a failure on standard output has its next step on the other
    return " ".join(said)


def tool_of(line: str) -> str:
    return line.split()[0]


@pytest.mark.parametrize("line", LINES, ids=tool_of)
def test_nobody_listens(capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.timeout.ms=1\n")
    said = failure_of(capsys, line, tmp_path, "127.0.0.1:1", str(file))
    assert "127.0.0.1:1" in said
    assert "refused" in said


@pytest.mark.parametrize("line", LINES, ids=tool_of)
def test_a_wrong_password(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, secured: Secured, line: str
) -> None:
    options = secured.options()
    options["sasl.jaas.config"] = options["sasl.jaas.config"].replace("admin's", "wrong")
    here = options.pop("bootstrap.servers")
    said = failure_of(capsys, line, tmp_path, here, secured.file(options))
    assert "Authentication failed" in said
    assert "wrong" not in said.replace("unknown user or wrong password", "")


@pytest.mark.parametrize("line", LINES, ids=tool_of)
def test_a_missing_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str) -> None:
    said = failure_of(capsys, line, tmp_path, "127.0.0.1:1", "none-such.properties")
    assert "none-such.properties" in said
    assert "no such file" in said.lower()

"""`kafka-reassign-partitions` on three brokers: files in, Kafka's sentences out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.cli.kafka.tool_runs import RunTool, runner

from barnabas.testing import Cluster

DEADLINE_S = 60


@pytest.fixture
def reassign(three_brokers: Cluster, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-reassign-partitions.sh", three_brokers.bootstrap, capsys)


@pytest.fixture
def moved(trio: Barnabas, reassign: RunTool, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions, both on broker 0."""
    name: str = request.node.name.partition("[")[0]
    assert trio("topics", "create", name, "--partitions", "2").code == 0
    finish(reassign, plan(tmp_path, name, [[0], [0]]))
    return name


def plan(tmp_path: Path, topic: str, replicas: list[list[int]], **more: Any) -> str:
    path = tmp_path / "plan.json"
    path.write_text(document(topic, replicas, **more))
    return str(path)


def document(topic: str, replicas: list[list[int]], **more: Any) -> str:
    entries = [
        {"topic": topic, "partition": n, "replicas": ids, "log_dirs": ["any"] * len(ids), **more}
        for n, ids in enumerate(replicas)
    ]
    return json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"))


def finish(reassign: RunTool, path: str) -> str:
    """Execute a plan, and return what the last `--verify` prints."""
    run = reassign("--execute", "--reassignment-json-file", path)
    assert run.code == 0, run.out
    deadline = time.monotonic() + DEADLINE_S
    while True:
        run = reassign("--verify", "--reassignment-json-file", path, "--preserve-throttles")
        assert (run.code, run.err) == (0, "")
        if "is still in progress" not in run.out and "rather than" not in run.out:
            return run.out
        assert time.monotonic() < deadline, run.out


def test_a_proposal(reassign: RunTool, moved: str, tmp_path: Path) -> None:
    topics = tmp_path / "test.json"
    topics.write_text(json.dumps({"topics": [{"topic": moved}], "version": 1}))
    words = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list")
    run = reassign(*words, "1,2", "--disable-rack-aware")
    assert (run.code, run.err) == (0, "")
    title, current, blank, other_title, proposed = run.out.splitlines()
    assert (title, blank) == ("Current partition replica assignment", "")
    assert current == document(moved, [[0], [0]])
    assert other_title == "Proposed partition reassignment configuration"
    assert proposed in (document(moved, [[1], [2]]), document(moved, [[2], [1]]))
    for brokers, text in (
        ("1,1", "Error: Broker list contains duplicate entries: [1]\n"),
        ("one", 'Error: --broker-list: For input string: "one"\n'),
        ("7", "Error: Replication factor: 1 larger than available brokers: 0.\n"),
    ):
        assert reassign(*words, brokers)[:2] == (1, text)


def test_another_number_of_replicas(reassign: RunTool, moved: str, tmp_path: Path) -> None:
    path = plan(tmp_path, moved, [[1, 2], [2]])
    words = ("--execute", "--reassignment-json-file", path)
    run = reassign(*words, "--disallow-replication-factor-change")
    assert run.code == 1
    assert f"Error reassigning partition(s):\n{moved}-0: " in run.out
    assert reassign("--list").out == "No partition reassignments found.\n"


def test_a_reassignment_with_throttles(
    reassign: RunTool, trio: Barnabas, moved: str, tmp_path: Path
) -> None:
    path = plan(tmp_path, moved, [[1], [2]])
    words = ("--execute", "--reassignment-json-file", path, "--throttle", "1000000")
    run = reassign(*words, "--replica-alter-log-dirs-throttle", "2000000")
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"Current partition replica assignment\n\n{document(moved, [[0], [0]])}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed.\n"
        "The inter-broker throttle limit was set to 1000000 B/s\n"
        "The replica-alter-dir throttle limit was set to 2000000 B/s\n"
        f"Successfully started partition reassignments for {moved}-0,{moved}-1\n"
    )
    assert (
        "leader.replication.throttled.replicas" in trio("configs", "describe", "--topic", moved).out
    )
    deadline = time.monotonic() + DEADLINE_S
    while "Clearing" not in (out := reassign("--verify", "--reassignment-json-file", path).out):
        assert time.monotonic() < deadline, out
    assert out == (
        "Status of partition reassignment:\n"
        f"Reassignment of partition {moved}-0 is completed.\n"
        f"Reassignment of partition {moved}-1 is completed.\n\n"
        "Clearing broker-level throttles on brokers 0,1,2\n"
        f"Clearing topic-level throttles on topic {moved}\n"
    )
    assert "throttled.replicas" not in trio("configs", "describe", "--topic", moved).out


def test_what_was_not_done(reassign: RunTool, moved: str, tmp_path: Path) -> None:
    assert reassign("--list").out == "No partition reassignments found.\n"
    path = plan(tmp_path, moved, [[2, 1], [0]])
    run = reassign("--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert run.out == (
        "Status of partition reassignment:\n"
        f"There is no active reassignment of partition {moved}-0, but replica set is 0 rather than "
        f"2,1.\nReassignment of partition {moved}-1 is completed.\n\n"
    )
    run = reassign("--cancel", "--reassignment-json-file", path, "--preserve-throttles")
    assert (run.code, run.out) == (
        0,
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.",
    )
    gone = plan(tmp_path, "none-such", [[1]])
    assert (
        "but replica set is  rather than 1."
        in reassign("--verify", "--reassignment-json-file", gone).out
    )


def test_one_that_takes_its_time(
    reassign: RunTool, trio: Barnabas, moved: str, tmp_path: Path
) -> None:
    """A reassignment in progress is listed, its throttle changed, and it is cancelled."""
    path = plan(tmp_path, moved, [[1], [0]])
    many = "".join(f"{number:1000}\n" for number in range(200))
    lines = tmp_path / "lines"
    lines.write_text(many)
    assert trio("produce", moved, "--file", str(lines), "--partition", "0").code == 0
    run = reassign("--execute", "--reassignment-json-file", path, "--throttle", "1000")
    assert run.code == 0, run.out
    assert reassign("--list").out == (
        f"Current partition reassignments:\n{moved}-0: replicas: 1,0. adding: 1. removing: 0.\n"
    )
    run = reassign("--execute", "--reassignment-json-file", path)
    assert run.code == 1
    assert run.out.startswith("Cannot execute because there is an existing partition assignment.")
    run = reassign(
        "--execute", "--reassignment-json-file", path, "--additional", "--throttle", "2000"
    )
    assert run.code == 0, run.out
    assert "The inter-broker throttle limit was set to 2000 B/s\n" in run.out
    run = reassign("--cancel", "--reassignment-json-file", path)
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"Successfully cancelled partition reassignment for: {moved}-0\n"
        "None of the specified partition moves are active."
        "Clearing broker-level throttles on brokers 0,1,2\n"
        f"Clearing topic-level throttles on topic {moved}\n"
    )
    assert reassign("--list").out == "No partition reassignments found.\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "invalid JSON"),
        ("{}", "no list of partitions"),
        (document("none-such", [[0]]), "UnknownTopicOrPartitionException: Topic none-such not fo"),
        (document("t", [[]]), "replicas of t-0 are not a list of brokers"),
        (document("t", [[9]]), "Unknown broker id 9"),
        (document("t", [[1, 2]], log_dirs=["any"]), "t-0 has 2 replicas and 1 log_dirs"),
    ],
)
def test_wrong_plans(reassign: RunTool, tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    run = reassign("--execute", "--reassignment-json-file", str(path))
    assert run.code == 1
    assert run.out.startswith("Error: ")
    assert text in run.out
    assert len(run.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Command must include exactly one action: --generate, --execute, --verify, --cancel"),
        (["--list", "--cancel"], "Command must include exactly one action"),
        (["--generate", "--broker-list", "1"], '"[topics-to-move-json-file]"'),
        (["--execute"], 'Missing required argument "[reassignment-json-file]"'),
        (
            ["--verify", "--reassignment-json-file", "f", "--throttle", "1"],
            'Option "[throttle]" can\'t be used with action "[verify]"',
        ),
        (["--list", "--bootstrap-controller", "h:1"], "can't be used with option"),
        (["--verify", "--reassignment-json-file", "f", "--disallow"], "with action"),
        (["--list", "--timeout", "soon"], "Cannot parse argument 'soon' of option timeout"),
    ],
)
def test_misuse(reassign: RunTool, words: list[str], text: str) -> None:
    run = reassign(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err


def test_a_missing_file(reassign: RunTool) -> None:
    run = reassign("--verify", "--reassignment-json-file", "none-such.json")
    assert run.code == 1
    assert run.out == "Error: none-such.json: cannot read: No such file or directory\n"


def test_directories_of_one_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], barnabas: Barnabas
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    with Cluster(options={"log.dirs": ",".join(map(str, paths))}) as cluster:
        reassign = runner("kafka-reassign-partitions", cluster.bootstrap, capsys)
        assert barnabas("topics", "create", "t", "--bootstrap", cluster.bootstrap).code == 0
        [source] = [path for path in paths if (path / "t-0").is_dir()]
        [target] = [path for path in paths if path != source]
        plan_ = plan(tmp_path, "t", [[0]], log_dirs=[str(target)])
        run = reassign("--execute", "--reassignment-json-file", plan_)
        assert run.code == 0, run.out
        assert run.out.endswith(
            "Successfully started partition reassignment for t-0\n"
            f"Successfully started moving log directory to {target} for replica t-0 with broker 0 "
            "\n"
        )
        deadline = time.monotonic() + DEADLINE_S
        done = "Reassignment of replica t-0-0 completed successfully.\n"
        while done not in (out := reassign("--verify", "--reassignment-json-file", plan_).out):
            assert time.monotonic() < deadline, out
        assert (target / "t-0").is_dir()
        back = plan(tmp_path, "t", [[0]], log_dirs=[str(source)])
        run = reassign("--verify", "--reassignment-json-file", back, "--preserve-throttles")
        assert run.out.endswith(
            f"Partition t-0 on broker 0 is not being moved from log dir {target} to {source}.\n"
        )

"""`barnabas reassign` against three brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.cli.main import main
from barnabas.testing import Cluster

COUNT = 500


@pytest.fixture
def moved(trio: Any, three_brokers: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of three partitions with records, on brokers 0 and 1 alone."""
    name = request.node.name.partition("[")[0] + f"-{abs(hash(request.node.name)) % 10**8}"
    plan: dict[str, Any] = {"version": 1, "partitions": []}
    assert (
        trio("topics", "create", name, "--partitions", "3", "--replication-factor", "2").code == 0
    )
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap})
    for number in range(COUNT):
        producer.produce(name, f"value {number}".encode(), partition=number % 3)
    assert producer.flush(20) == 0
    plan["partitions"] = [
        {"topic": name, "partition": number, "replicas": [number % 2, 1 - number % 2]}
        for number in range(3)
    ]
    return _settled(trio, name, plan)


def _settled(trio: Any, name: str, plan: dict[str, Any]) -> str:
    path = Path(name + ".json")
    path.write_text(json.dumps(plan))
    try:
        run = trio("reassign", "execute", str(path))
        assert run.code == 0, run.err
        run = trio("reassign", "verify", str(path), "--wait", "--wait-timeout", "30")
        assert run.code == 0, run.out
    finally:
        path.unlink()
    return name


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def replicas(trio: Any, topic: str) -> list[list[int]]:
    [document] = json.loads(trio("topics", "describe", topic, "--json").out)
    return [partition["replicas"] for partition in document["partitions"]]


def test_from_a_proposal_to_its_end_and_back(trio: Any, moved: str) -> None:
    before = replicas(trio, moved)
    made = trio("reassign", "generate", "--topic", moved, "--brokers", "1,2", "--output", "plan")
    assert made.code == 0, made.err
    assert f"{moved}-0" in made.out
    dry = json.loads(trio("reassign", "execute", "plan", "--dry-run", "--json").out)
    assert dry["bytes_to_copy"] > 0
    assert [broker["id"] for broker in dry["brokers"]] == [0, 1, 2]
    assert replicas(trio, moved) == before, "a dry run changes nothing"
    run = trio("reassign", "execute", "plan", "--save", "back")
    assert (run.code, run.err) == (0, "")
    assert "started: 3 of 3 partitions" in run.out
    done = trio("reassign", "verify", "plan", "--wait", "--wait-timeout", "30")
    assert done.code == 0, done.out
    assert [line.split()[1] for line in done.out.splitlines()[1:4]] == ["done"] * 3
    assert {broker for held in replicas(trio, moved) for broker in held} == {1, 2}
    assert trio("reassign", "execute", "back").code == 0
    assert trio("reassign", "verify", "back", "--wait", "--wait-timeout", "30").code == 0
    assert replicas(trio, moved) == before
    assert trio("reassign", "list").out == "no reassignment is in progress\n"
    read = trio("consume", moved, "--from", "beginning", "--exit-at-end")
    assert len(read.out.splitlines()) == COUNT


def test_what_is_uneven_is_spread_and_then_stays(trio: Any, moved: str) -> None:
    made = trio("reassign", "spread", "--topic", moved, "--output", "plan")
    assert made.code == 0, made.err
    assert "barnabas elect --all" in made.out
    assert trio("reassign", "execute", "plan").code == 0
    run = trio("reassign", "verify", "plan", "--wait", "--wait-timeout", "30")
    assert run.code == 0, run.out
    after = replicas(trio, moved)
    assert sorted(broker for each in after for broker in each) == [0, 0, 1, 1, 2, 2]
    assert sorted(each[0] for each in after) == [0, 1, 2]
    again = trio("reassign", "spread", "--topic", moved, "--output", "none")
    assert (again.code, again.out) == (0, "nothing to move: leaders and replicas are even\n")
    assert not Path("none").exists()
    assert json.loads(trio("reassign", "spread", "--topic", moved).out)["partitions"] == []
    whole = json.loads(trio("reassign", "spread", "--ignore-racks", "--json").out)
    assert all(each["topic"] != moved for each in whole["partitions"])


def test_a_proposal_goes_through_a_pipe(trio: Any, moved: str) -> None:
    Path("topics").write_text(json.dumps({"version": 1, "topics": [{"topic": moved}]}))
    document = json.loads(trio("reassign", "generate", "--file", "topics").out)
    assert document["version"] == 1
    assert [entry["partition"] for entry in document["partitions"]] == [0, 1, 2]
    assert all(len(entry["replicas"]) == 2 for entry in document["partitions"])


def test_a_plan_that_is_fulfilled_starts_nothing(trio: Any, moved: str) -> None:
    entry = {"topic": moved, "partition": 0, "replicas": [0, 1]}
    Path("plan").write_text(json.dumps({"partitions": [entry]}))
    run = trio("reassign", "execute", "plan", "--throttle", "1000")
    assert run.code == 0
    assert (
        run.out
        == "nothing to move between brokers: every partition already has the planned replicas\n"
    )
    assert "throttled" not in trio("configs", "describe", "--broker", "0").out
    document = json.loads(trio("reassign", "execute", "plan", "--json").out)
    assert document == {"bytes_to_copy": 0, "moves": [], "brokers": []}


def test_throttles_are_set_and_lifted(trio: Any, moved: str) -> None:
    entry = {"topic": moved, "partition": 0, "replicas": [2, 0]}
    Path("plan").write_text(json.dumps({"partitions": [entry]}))
    assert trio("reassign", "execute", "plan", "--throttle", "5000000").code == 0
    shown = trio("configs", "describe", "--topic", moved).out
    assert ["follower.replication.throttled.replicas", "0:2", "topic"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "5000000" in trio("configs", "describe", "--broker", "2").out
    done = trio("reassign", "verify", "plan", "--wait", "--wait-timeout", "30", "--json")
    assert json.loads(done.out)["throttles_lifted"] is True
    assert "throttled" not in trio("configs", "describe", "--topic", moved).out
    assert "throttled" not in trio("configs", "describe", "--broker", "2").out


def test_what_is_elsewhere_is_told(trio: Any, moved: str) -> None:
    entry = {"topic": moved, "partition": 0, "replicas": [2, 1]}
    Path("plan").write_text(json.dumps({"partitions": [entry]}))
    run = trio("reassign", "verify", "plan")
    assert run.code == 1
    assert run.out.splitlines()[1].split() == [f"{moved}-0", "elsewhere", "0,1", "2,1", "-"]
    assert (
        trio("reassign", "cancel", "plan").out
        == "no reassignment of these partitions is in progress\n"
    )
    assert trio("reassign", "cancel", "--all").out == "no reassignment is in progress\n"


def test_a_move_to_a_dead_broker_is_cancelled(
    trio: Any, moved: str, three_brokers: Cluster
) -> None:
    """It was alive when the move began, so that the move cannot end before it is back."""
    three_brokers.kill(2)
    try:
        entry = {"topic": moved, "partition": 0, "replicas": [2]}
        Path("plan").write_text(json.dumps({"partitions": [entry]}))
        refused = trio("reassign", "execute", "plan")
        assert (refused.code, refused.err) == (
            1,
            "barnabas reassign: broker 2 is not alive; live brokers: 0, 1\n",
        )
    finally:
        three_brokers.start(2)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["generate", "--topic", "none-such"], "none-such"),
        (["generate", "--file", "missing.json"], "missing.json"),
        (["execute", "missing.json"], "missing.json"),
        (["execute", "no-topic"], "none-such"),
        (["execute", "no-broker"], "broker 9 is not alive"),
        (["execute", "no-partition"], "partition here-7 does not exist"),
        (["verify", "no-topic"], "none-such"),
    ],
)
def test_one_clear_line_on_error(trio: Any, words: list[str], complaint: str) -> None:
    assert trio("topics", "create", "here", "--if-not-exists").code == 0
    for name, topic, partition, broker in (
        ("no-topic", "none-such", 0, 1),
        ("no-broker", "here", 0, 9),
        ("no-partition", "here", 7, 1),
    ):
        entry = {"topic": topic, "partition": partition, "replicas": [broker]}
        Path(name).write_text(json.dumps({"partitions": [entry]}))
    run = trio("reassign", *words)
    assert run.code == 1
    assert complaint in run.err
    assert len(run.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["generate"],
        ["generate", "--topic", "t", "--brokers", "1,1"],
        ["generate", "--topic", "t", "--brokers", "one"],
        ["execute", "plan", "--throttle", "0"],
        ["cancel"],
    ],
)
def test_misuse(trio: Any, words: list[str]) -> None:
    run = trio("reassign", *words)
    assert run.code == 2
    assert "usage:" in run.err


def test_too_few_brokers(trio: Any, moved: str) -> None:
    run = trio("reassign", "generate", "--topic", moved, "--brokers", "1")
    assert (run.code, run.err) == (
        1,
        "barnabas reassign: --brokers: 2 replicas per partition need 2 brokers, not 1\n",
    )


def test_a_replica_goes_to_the_directory_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    with Cluster(options={"log.dirs": ",".join(map(str, paths))}) as cluster:

        def run(*words: str) -> tuple[int, str, str]:
            code = main([*words, "--bootstrap", cluster.bootstrap])
            return code, *capsys.readouterr()

        assert run("topics", "create", "here")[0] == 0
        [source] = [path for path in paths if (path / "here-0").is_dir()]
        [target] = [path for path in paths if path != source]
        entry = {"topic": "here", "partition": 0, "replicas": [0], "log_dirs": [str(target)]}
        Path("plan").write_text(json.dumps({"partitions": [entry]}))
        code, out, _ = run("reassign", "verify", "plan")
        assert code == 1
        assert out.splitlines()[-1].split() == [
            "here-0",
            "0",
            "elsewhere",
            str(source),
            str(target),
        ]
        code, out, err = run("reassign", "execute", "plan")
        assert (code, err) == (0, "")
        assert f"here-0 on broker 0 moves to {target}" in out
        code, out, _ = run("reassign", "verify", "plan", "--wait", "--json")
        assert code == 0, out
        [moved] = json.loads(out)["directories"]
        assert (moved["state"], moved["directory"]) == ("done", str(target))
        assert (target / "here-0").is_dir()
        entry["log_dirs"] = ["/none/such"]
        Path("plan").write_text(json.dumps({"partitions": [entry]}))
        code, out, err = run("reassign", "execute", "plan")
        assert code == 1
        assert "LOG_DIR_NOT_FOUND" in err
        assert len(err.splitlines()) == 1

"""`barnabas groups` against a real broker: what it prints, what it changes, what it refuses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit, fetch_offsets, find, join_request
from tests.unit.broker.serving import Wire, batch_of, create_topic, produce

from barnabas.assignment.embedded import encode_assignment
from barnabas.cli.main import main
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.testing import Cluster
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster(options=COORDINATED) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def barnabas(
    bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", bootstrap)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    host, _, port = bootstrap.partition(":")
    with Wire((host, int(port))) as connection:
        find(connection, "any")
        yield connection


@pytest.fixture
def name(request: pytest.FixtureRequest, wire: Wire) -> str:
    """The name of a topic of two partitions with ten records an hour apart, and of its group."""
    topic: str = request.node.name.removeprefix("test_")
    create_topic(wire, topic, 2)
    rows = [(NOW_MS - (10 - number) * HOUR_MS, None, b"%d" % number, ()) for number in range(10)]
    for partition in (0, 1):
        assert produce(wire, topic, build_batch(rows), partition=partition).error_code == 0
    return topic


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_groups_are_listed(barnabas: Any, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 3}) == [0]
    code, out, _ = barnabas("groups", "list")
    assert code == 0
    assert out.startswith("group")
    assert [name, "Empty", "classic", "-"] in rows_of(out)
    documents = json.loads(barnabas("groups", "list", "--state", "empty", "--json")[1])
    assert {"name": name, "state": "Empty", "type": "classic", "protocol_type": ""} in documents
    assert json.loads(barnabas("groups", "list", "--type", "consumer", "--json")[1]) == []


def test_lag_is_told_in_records_and_in_seconds(barnabas: Any, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 8, (name, 1): 10}) == [0, 0]
    code, out, _ = barnabas("groups", "describe", name)
    assert code == 0
    title, columns, first, second = out.splitlines()
    assert title == f"group {name}: Empty, classic, 0 members, coordinator 0"
    assert columns.split()[:6] == ["topic", "partition", "committed", "end", "lag", "lag"]
    assert first.split()[:5] == [name, "0", "8", "10", "2"]
    since_import_s = (time.time() * 1000 - NOW_MS) / 1000
    assert 7200 <= float(first.split()[5]) <= 7200 + since_import_s + 1  # record 8: two hours old
    assert second.split() == [name, "1", "10", "10", "0", "0", "-", "-", "-"]
    (document,) = json.loads(barnabas("groups", "describe", name, "--json")[1])
    assert [each["lag"] for each in document["offsets"]] == [2, 0]
    assert document["offsets"][1]["lag_seconds"] == 0
    missing = barnabas("groups", "describe", "never-was", name)
    assert missing[0] == 1
    assert "group 'never-was' does not exist (GROUP_ID_NOT_FOUND)" in missing[2]
    assert title in missing[1]


def test_members_are_shown_with_what_they_own(barnabas: Any, wire: Wire, name: str) -> None:
    joined = wire.ask(join_request(name), 3)
    assigned = encode_assignment([TopicPartition(name, 0), TopicPartition(name, 1)])
    request = SyncGroupRequest(
        group_id=name,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigned)],
    )
    assert wire.ask(request, 3).error_code == 0
    _, out, _ = barnabas("groups", "describe", name, "--members")
    assert out.splitlines()[0] == f"group {name}: Stable, classic, range, 1 members, coordinator 0"
    assert rows_of(out)[2] == [joined.member_id, "-", "test", "/127.0.0.1", f"{name}:0,1"]
    rows = rows_of(barnabas("groups", "describe", name)[1])
    assert rows[2] == [name, "0", "-", "-", "-", "-", joined.member_id, "/127.0.0.1", "test"]
    refused = barnabas(
        "groups", "reset-offsets", name, "--topic", name, "--to", "earliest", "--execute"
    )
    assert refused[0] == 1
    assert "is Stable with 1 members; stop them first (NON_EMPTY_GROUP)" in refused[2]
    assert barnabas("groups", "delete", name)[2].endswith("(NON_EMPTY_GROUP)\n")


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("earliest", 0),
        ("latest", 10),
        ("current", 4),
        ("7", 7),
        ("99", 10),
        ("+3", 7),
        ("-3", 1),
        ("-30", 0),
        ("270m", 6),  # the first record that is less than four and a half hours old
        pytest.param(f"@{NOW_MS - 2 * HOUR_MS}", 8, id="time"),  # workers must agree on names
        ("1m", 10),
    ],
)
def test_offsets_are_reset(
    barnabas: Any, wire: Wire, bootstrap: str, goal: str, expected: int
) -> None:
    name = f"reset-to{goal.replace('+', '.plus.').replace('@', '.at.')}"
    create_topic(wire, name)
    rows = [(NOW_MS - (10 - number) * HOUR_MS, None, b"%d" % number, ()) for number in range(10)]
    assert produce(wire, name, build_batch(rows)).error_code == 0
    assert commit(wire, name, {(name, 0): 4}) == [0]
    words = ("groups", "reset-offsets", name, "--topic", name, f"--to={goal}")
    code, out, _ = barnabas(*words)
    assert code == 0
    assert rows_of(out)[1] == [name, "0", "4", str(expected)]
    assert "nothing was changed" in out
    assert fetch_offsets(wire, name, [(name, 0)]) == [4]
    code, out, _ = barnabas(*words, "--execute", "--json")
    assert json.loads(out) == [
        {"topic": name, "partition": 0, "before": 4, "after": expected, "executed": True}
    ]
    assert fetch_offsets(wire, name, [(name, 0)]) == [expected]


def test_offsets_go_to_a_file_and_come_back(
    barnabas: Any, wire: Wire, name: str, tmp_path: Path
) -> None:
    assert commit(wire, name, {(name, 0): 3, (name, 1): 4}) == [0, 0]
    reset = ("groups", "reset-offsets", name)
    code, saved, _ = barnabas(*reset, "--all-topics", "--to", "current", "--export")
    assert (code, saved) == (0, f"{name},0,3\n{name},1,4\n")
    file = tmp_path / "offsets.csv"
    file.write_text(saved)
    assert barnabas(*reset, "--topic", f"{name}:1", "--to", "latest", "--execute")[0] == 0
    assert fetch_offsets(wire, name, [(name, 0), (name, 1)]) == [3, 10]
    assert barnabas(*reset, "--from-file", str(file), "--execute")[0] == 0
    assert fetch_offsets(wire, name, [(name, 0), (name, 1)]) == [3, 4]
    file.write_text(f"{name},x,3\n")
    code, _, err = barnabas(*reset, "--from-file", str(file))
    assert code == 1
    assert "line 1" in err


def test_a_group_is_made_by_its_first_offsets(barnabas: Any, wire: Wire, name: str) -> None:
    words = ("groups", "reset-offsets", f"new-{name}", "--topic", name, "--to", "5", "--execute")
    assert barnabas(*words)[0] == 0
    assert fetch_offsets(wire, f"new-{name}", [(name, 0), (name, 1)]) == [5, 5]
    shift = barnabas("groups", "reset-offsets", "other", "--topic", name, "--to=+1")
    assert shift[0] == 1
    assert "no committed offset to step from" in shift[2]


def test_what_is_not_said_is_asked_for(barnabas: Any, name: str) -> None:
    code, _, err = barnabas("groups", "reset-offsets", name, "--to", "earliest")
    assert code == 1
    assert "--all-topics" in err
    assert barnabas("groups", "reset-offsets", name, "--topic", name, "--to", "soon")[0] == 2
    missing = barnabas("groups", "reset-offsets", name, "--topic", "nowhere", "--to", "earliest")
    assert "topic 'nowhere' does not exist" in missing[2]
    beyond = barnabas("groups", "reset-offsets", name, "--topic", f"{name}:7", "--to", "1")
    assert "has partitions 0-1, not 7" in beyond[2]


def test_groups_are_deleted(barnabas: Any, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 3}) == [0]
    assert barnabas("groups", "delete", name) == (0, f"deleted group {name}\n", "")
    code, _, err = barnabas("groups", "delete", name)
    assert code == 1
    assert err.startswith(f"barnabas groups delete: {name}: ")
    assert err.count(name) == 1
    assert err.endswith("(GROUP_ID_NOT_FOUND)\n")
    assert barnabas("groups", "delete", name, "--if-exists")[:2] == (
        0,
        f"group {name} does not exist\n",
    )
    assert fetch_offsets(wire, name, [(name, 0)]) == [-1]


def test_an_unread_batch_counts_from_its_own_record(barnabas: Any, wire: Wire) -> None:
    """A commit inside of a batch waits for the record after it, not for the batch's first."""
    create_topic(wire, "inside")
    assert produce(wire, "inside", batch_of(["old"] * 5)).error_code == 0
    assert commit(wire, "inside", {("inside", 0): 3}) == [0]
    (document,) = json.loads(barnabas("groups", "describe", "inside", "--json")[1])
    assert document["offsets"][0]["lag"] == 2

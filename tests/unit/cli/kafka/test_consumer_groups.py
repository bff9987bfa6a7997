"""`kafka-consumer-groups` against a real broker: what Kafka's tool prints, to the letter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit, fetch_offsets, find, join_request
from tests.unit.broker.serving import Wire, batch_of, create_topic, produce
from tests.unit.cli.conftest import Run

from barnabas.assignment.embedded import encode_assignment
from barnabas.cli.main import main
from barnabas.model.ids import TopicPartition
from barnabas.testing import Cluster
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Groups = Callable[..., Run]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster(options=COORDINATED) as cluster:
        yield cluster.bootstrap


def test_regular_expressions(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ("kafka-consumer-groups.sh", "--validate-regex")
    assert [main((*tool, text)) for text in ("a.*", "a(")] == [0, 0]
    valid, invalid = capsys.readouterr().out.splitlines()
    assert valid == "The regular expression `a.*` is valid."
    assert invalid.startswith("The regular expression `a(` is invalid: missing ")
    assert main(("kafka-consumer-groups.sh", "--list")) == 1
    assert 'Missing required argument "[bootstrap-server]"' in capsys.readouterr().err


@pytest.fixture
def groups(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Groups:
    """Run the tool."""

    def run(*words: str) -> Run:
        code = main(("kafka-consumer-groups.sh", "--bootstrap-server", bootstrap, *words))
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    host, _, port = bootstrap.partition(":")
    with Wire((host, int(port))) as connection:
        find(connection, "any")
        yield connection


@pytest.fixture
def name(request: pytest.FixtureRequest, wire: Wire) -> str:
    """The name of a topic of two partitions with ten records each, and of its group."""
    topic = f"t{abs(hash(request.node.name)) % 10**6}"
    create_topic(wire, topic, 2)
    for partition in (0, 1):
        assert produce(wire, topic, batch_of([b"x"] * 10), partition=partition).error_code == 0
    return topic


@pytest.fixture
def member(wire: Wire, name: str) -> str:
    """A member of the group that has both partitions."""
    joined = wire.ask(join_request(name), 3)
    assigned = encode_assignment([TopicPartition(name, 0), TopicPartition(name, 1)])
    request = SyncGroupRequest(
        group_id=name,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigned)],
    )
    assert wire.ask(request, 3).error_code == 0
    return str(joined.member_id)


def test_groups_are_listed(groups: Groups, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 3}) == [0]
    assert name in groups("--list").out.splitlines()
    head = f"{'GROUP':<25} {'STATE':<20}"
    states = groups("--list", "--state").out.splitlines()
    assert states[0] == head
    assert f"{name:<25} {'Empty':<20}" in states
    assert (
        f"{name:<25} {'Classic':<20} {'Empty':<20}"
        in groups("--list", "--type", "--state", "empty,stable").out.splitlines()
    )
    assert groups("--list", "--type", "consumer").out.splitlines() == [
        f"{'GROUP':<25} {'TYPE':<20}"
    ]


def test_offsets_are_described_in_kafkas_columns(groups: Groups, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 8, (name, 1): 10}) == [0, 0]
    run = groups("--describe", "--group", name)
    assert (run.code, run.err) == (0, f"\nConsumer group '{name}' has no active members.\n")
    blank, head, *rows = run.out.splitlines()
    assert blank == ""
    assert head == (
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
        "             CONSUMER-ID     HOST            CLIENT-ID"
    )
    assert rows == [
        f"{name:<15} {name:<15} 0          8               10              2"
        "               -               -               -",
        f"{name:<15} {name:<15} 1          10              10              0"
        "               -               -               -",
    ]
    assert groups("--describe", "--all-groups", "--offsets", "--verbose").out.count(head) >= 1


def test_members_and_state_are_described(groups: Groups, name: str, member: str) -> None:
    head, row = groups("--describe", "--group", name, "--members", "--verbose").out.splitlines()[1:]
    width = len(member)
    assert head == (
        f"{'GROUP':<15} {'CONSUMER-ID':<{width}} {'HOST':<15} {'CLIENT-ID':<15} "
        f"{'#PARTITIONS':<15} ASSIGNMENT"
    )
    assert row == (
        f"{name:<15} {member:<{width}} {'/127.0.0.1':<15} {'test':<15} {2:<15} {name}(0,1)"
    )
    assert (
        groups("--describe", "--group", name, "--members")
        .out.splitlines()[2]
        .endswith(" 2" + " " * 15)
    )
    head, row = groups("--describe", "--group", name, "--state").out.splitlines()[1:]
    assert head.split() == [
        "GROUP",
        "COORDINATOR",
        "(ID)",
        "ASSIGNMENT-STRATEGY",
        "STATE",
        "#MEMBERS",
    ]
    assert row.split()[0] == name
    assert row.split()[2:] == ["(0)", "range", "Stable", "1"]
    (owned, _) = groups("--describe", "--group", name).out.splitlines()[2:]
    assert owned.split() == [name, name, "0", "-", "10", "-", member, "/127.0.0.1", "test"]


def test_a_group_with_members_is_left_alone(groups: Groups, name: str, member: str) -> None:
    run = groups("--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    assert run.code == 0
    assert run.out == (
        f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the "
        "current state is Stable.\n\n"
        f"{'GROUP':<30} {'TOPIC':<30} {'PARTITION':<10} {'NEW-OFFSET':<15}\n"
    )
    run = groups("--delete", "--group", name)
    assert run.out == (
        "\nError: Deletion of some consumer groups failed:\n"
        f"* Group '{name}' could not be deleted due to: "
        "org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.\n"
    )


def test_what_does_not_exist_is_an_error_on_standard_output(groups: Groups) -> None:
    run = groups("--describe", "--group", "none-such")
    assert (run.code, run.out) == (0, "\nError: Consumer group 'none-such' does not exist.\n")
    assert "GroupIdNotFoundException" in groups("--delete", "--group", "none-such").out
    run = groups(
        "--reset-offsets", "--group", "g", "--topic", "none-such", "--to-latest", "--dry-run"
    )
    assert run.out.startswith("\nError: Executing consumer group command failed due to ")
    assert "UnknownTopicOrPartitionException" in run.out


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-current"], 4),
        (["--to-offset", "7"], 7),
        (["--to-offset", "99"], 10),
        (["--shift-by", "-3"], 1),
        (["--shift-by", "+2"], 6),
        (["--to-datetime", "2001-01-01T00:00:00.000"], 0),
        (["--to-datetime", "2037-01-01T00:00:00.000+01:00"], 10),
        (["--by-duration", "P9999DT1H2M3.5S"], 0),
        (["--by-duration", "PT1M"], 10),
    ],
)
def test_every_scenario(
    groups: Groups, wire: Wire, name: str, scenario: list[str], expected: int
) -> None:
    assert commit(wire, name, {(name, 0): 4}) == [0]
    words = ("--reset-offsets", "--group", name, "--topic", f"{name}:0", *scenario)
    dry = groups(*words)
    assert "WARN: No action will be performed as the --execute option is missing." in dry.err
    row = f"{name:<30} {name:<30} {0:<10} {expected:<15}"
    assert dry.out.splitlines()[-1] == row
    assert fetch_offsets(wire, name, [(name, 0)]) == [4]
    done = groups(*words, "--execute")
    assert done.out == dry.out
    assert ("Value will be set to 10." in done.err) == ("99" in scenario)
    assert fetch_offsets(wire, name, [(name, 0)]) == [expected]


def test_offsets_go_to_a_file_and_back(
    groups: Groups, wire: Wire, name: str, tmp_path: Path
) -> None:
    assert commit(wire, name, {(name, 0): 4, (name, 1): 5}) == [0, 0]
    export = ("--reset-offsets", "--all-topics", "--to-current", "--export", "--dry-run")
    exported = groups(*export, "--group", name)
    assert exported.out == f"{name},0,4\n{name},1,5\n\n"
    other = f"{name}-other"
    assert commit(wire, other, {(name, 0): 1}) == [0]
    both = groups(*export, "--group", name, "--group", other)
    assert both.out == f"{name},{name},0,4\n{name},{name},1,5\n{other},{name},0,1\n\n"
    path = tmp_path / "offsets.csv"
    for text in (exported.out, both.out):
        path.write_text(text)
        assert commit(wire, name, {(name, 0): 9}) == [0]
        run = groups("--reset-offsets", "--group", name, "--from-file", str(path), "--execute")
        assert (run.code, run.err) == (0, "")
        assert fetch_offsets(wire, name, [(name, 0), (name, 1)]) == [4, 5]
    path.write_text("one,two\n")
    run = groups("--reset-offsets", "--group", name, "--from-file", str(path), "--execute")
    assert "line 1: 'one,two' must be topic,partition,offset" in run.out


def test_offsets_and_groups_are_deleted(groups: Groups, wire: Wire, name: str) -> None:
    assert commit(wire, name, {(name, 0): 4, (name, 1): 5}) == [0, 0]
    run = groups("--delete-offsets", "--group", name, "--topic", f"{name}:1")
    assert run.out == (
        f"Request succeed for deleting offsets with topic {name}:1 group {name}\n\n"
        f"{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}\n"
        f"{name:<30} {1:<15} {'Successful':<15}\n"
    )
    assert len(groups("--describe", "--group", name).out.splitlines()) == 3
    run = groups("--delete-offsets", "--group", "none-such", "--topic", name)
    assert run.out.startswith("\nError: 'none-such' does not exist.\n")
    run = groups("--delete", "--group", name)
    assert run.out == f"Deletion of requested consumer groups ('{name}') was successful.\n"
    assert name not in groups("--list").out.splitlines()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Command must include exactly one action: --list, --describe"),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--list", "--group", "g"], 'Option "[group]" can\'t be used with option "[list]"'),
        (["--describe", "--group", "g", "--all-groups"], "can't be used with option"),
        (["--describe", "--group", "g", "--state", "Stable"], "does not take a value for [state]"),
        (["--describe", "--group", "g", "--state", "--members"], "at most one of these options"),
        (["--list", "--state", "happy"], "Invalid state list 'happy'. Valid states are: Prepari"),
        (["--list", "--type", "old"], "Invalid types list 'old'. Valid types are: Classic, Cons"),
        (["--list", "--members"], "[members] are unavailable given other options"),
        (["--delete", "--group", "g", "--topic", "t"], "does not support topic-specific offset"),
        (["--delete-offsets", "--group", "g"], "takes the following options: [group], [topic]"),
        (["--reset-offsets", "--group", "g", "--to-latest"], "One of the reset scopes should be"),
        (["--reset-offsets", "--group", "g", "--all-topics"], "requires one of the following scen"),
        (
            ["--reset-offsets", "--group", "g", "--all-topics", "--to-latest", "--to-earliest"],
            "can't be used with option",
        ),
        (
            ["--reset-offsets", "--group", "g", "--all-topics", "--dry-run", "--execute"],
            "only accepts one of [execute] and [dry-run]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--topic", "t:x", "--to-latest", "--dry-run"],
            "Invalid partition 'x' specified in topic arg 't:x'",
        ),
        (
            ["--reset-offsets", "--group", "g", "--topic", "t", "--by-duration", "1h"],
            "Cannot parse argument '1h' of option by-duration",
        ),
        (["--describe", "--grup", "g"], "did you mean --group?"),
    ],
)
def test_misuse(groups: Groups, words: list[str], text: str) -> None:
    run = groups(*words)
    assert run.code == 1
    assert text in run.err
    assert "Traceback" not in run.err


def test_an_unreachable_broker(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    words = ("--bootstrap-server", "127.0.0.1:1", "--list", "--timeout", "500")
    assert main(("kafka-consumer-groups", *words)) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("\nError: Executing consumer group command failed due to ")
    assert len(captured.out.splitlines()) == 2
    assert time.monotonic() - started < 10

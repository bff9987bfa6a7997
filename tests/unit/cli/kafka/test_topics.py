"""`kafka-topics`: create, list, describe, alter and delete, and what it prints for each."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner

_numbers = itertools.count()


@pytest.fixture
def topics(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-topics.sh", barnabas_bootstrap, capsys)


@pytest.fixture
def name() -> str:
    return f"tool-topic-{next(_numbers)}"


def test_from_birth_to_death(topics: RunTool, name: str) -> None:
    made = topics("--create", "--topic", name, "--partitions", "2", "--config", "flush.messages=1")
    assert made == (0, f"Created topic {name}.\n", "")
    assert topics("--list", "--topic", f"{name},none-such").out == f"{name}\n"
    assert name in topics("--list", "--exclude-internal").out.splitlines()
    assert topics("--alter", "--topic", name, "--partitions", "3") == (0, "", "")
    run = topics("--describe", "--topic", name)
    first, *rest = run.out.splitlines()
    assert (run.code, run.err) == (0, "")
    label, topic_id, *more = first.split("\t")
    assert (label, topic_id[:9]) == (f"Topic: {name}", "TopicId: ")
    assert more == ["PartitionCount: 3", "ReplicationFactor: 1", "Configs: flush.messages=1"]
    places = "Leader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr: "
    assert rest == [f"\tTopic: {name}\tPartition: {n}\t{places}" for n in range(3)]
    assert topics("--describe", "--topic-id", topic_id[9:]).out == run.out
    assert topics("--describe", "--topic", name, "--topics-with-overrides").out == f"{first}\n"
    for report in ("unavailable-partitions", "under-replicated-partitions"):
        assert topics("--describe", "--topic", name, f"--{report}") == (0, "", "")
    assert topics("--describe", "--topic", name, "--at-min-isr-partitions").out.split("\n") == [
        *rest,
        "",
    ]
    assert topics("--delete", "--topic", name) == (0, "", "")
    assert topics("--list", "--topic", name).out.strip() == ""


def test_what_exists_and_what_does_not(topics: RunTool, name: str) -> None:
    assert topics("--create", "--topic", name, "--replica-assignment", "0,0").code == 0
    again = topics("--create", "--topic", name)
    assert again.code == 1
    assert again.out == f"Error while executing topic command : topic '{name}' already exists\n"
    assert topics("--create", "--if-not-exists", "--topic", name) == (0, "", "")
    missing = f"{name}-not"
    for action in ("--describe", "--delete", "--alter"):
        words = (action, "--topic", missing, *(("--partitions", "2") * (action == "--alter")))
        run = topics(*words)
        assert run.code == 1
        assert run.out.endswith(f"Topic '{missing}' does not exist as expected\n")
        assert topics(*words, "--if-exists") == (0, "", "")
    unknown = topics("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ")
    assert (unknown.code, "does not exist as expected" in unknown.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--create", "--topic", "t", "--config", "x=y"), "executing topic command : "),
        (("--create", "--topic", "a/b"), "executing topic command : "),
        (("--create", "--topic", "t", "--partitions", "0"), "partitions must be greater than 0"),
        (
            ("--create", "--topic", "t", "--replication-factor", "40000"),
            "The replication factor must be between 1 and 32767 inclusive",
        ),
        (("--create", "--topic", "t", "--replication-factor", "2"), "executing topic command : "),
        (("--describe", "--topic", "["), "[ is an invalid regex."),
        (("--create", "--topic", "t", "--partitions", "many"), "Cannot parse argument 'many'"),
        (("--create", "--topic", "t", "--config", "flush"), 'format "key=val"'),
        (("--create", "--topic", "t", "--replica-assignment", "0:0"), "duplicate entries: 0"),
        (
            ("--create", "--topic", "t", "--replica-assignment", "0,0:1"),
            "Partition 1 has different replication factor",
        ),
        (
            ("--create", "--topic", "t", "--replica-assignment", "x"),
            "Cannot parse argument 'x' of option replica-assignment",
        ),
    ],
)
def test_failures_are_on_standard_output(
    topics: RunTool, words: tuple[str, ...], text: str
) -> None:
    run = topics(*words)
    assert run.code == 1
    assert text in run.out
    assert len(run.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Command must include exactly one action"),
        (("--list", "--describe"), "Command must include exactly one action"),
        (("--create",), 'Missing required argument "[topic]"'),
        (("--alter", "--topic", "t"), 'Missing required argument "[partitions]"'),
        (
            ("--create", "--topic", "t", "--replica-assignment", "0", "--partitions", "1"),
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
        (("--list", "--if-exists"), 'Option "[if-exists]" can\'t be used with option "[list]"'),
        (("--list", "--topik", "t"), "topik is not a recognized option; did you mean --topic?"),
        (("--list", "--zookeeper", "h:1"), "can't be used with option"),
    ],
)
def test_misuse(topics: RunTool, words: tuple[str, ...], text: str) -> None:
    run = topics(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


def test_no_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("kafka-topics", None, capsys)("--list")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("--bootstrap-server must be specified")
    run = runner("kafka-topics", "127.0.0.1:1", capsys)("--list")
    assert run.code == 1
    assert run.out.startswith("Error while executing topic command : ")
    assert "127.0.0.1:1" in run.out
    assert "barnabas start" in run.err

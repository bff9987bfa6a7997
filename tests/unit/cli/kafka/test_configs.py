"""`kafka-configs`: options of topics and brokers, quotas, credentials."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def configs(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-configs", barnabas_bootstrap, capsys)


def test_options_of_a_topic(configs: RunTool, topic: str, tmp_path: Path) -> None:
    where = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--alter", "--add-config", "retention.ms=5,cleanup.policy=[compact,delete]")
    done = f"Completed updating config for topic {topic}.\n"
    assert configs(*where, *change) == (0, done, "")
    run = configs("--describe", "--topic", topic)
    assert run.out.splitlines()[0] == f"Dynamic configs for topic {topic} are:"
    assert sorted(run.out.splitlines()[1:]) == [
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, "
        "DEFAULT_CONFIG:log.retention.hours=168}",
    ]
    assert configs(*where, "--alter", "--delete-config", "retention.ms,cleanup.policy").out == done
    assert configs("--describe", "--topic", topic).out.count("\n") == 1
    file = tmp_path / "topic.properties"
    file.write_text("retention.ms = 7\n")
    assert configs(*where, "--alter", "--add-config-file", str(file)).out == done
    assert "  retention.ms=7 " in configs("--describe", "--topic", topic).out
    everything = configs("--describe", "--topic", topic, "--all").out
    assert everything.startswith(f"All configs for topic {topic} are:\n")
    assert "  max.message.bytes=" in everything


def test_options_of_brokers(configs: RunTool) -> None:
    for where, what in (
        (("--broker", "0"), "broker 0"),
        (("--entity-type", "brokers", "--entity-default"), "default config for brokers"),
    ):
        added = configs(*where, "--alter", "--add-config", "log.cleaner.threads=2")
        shown = configs(*where, "--describe")
        removed = configs(*where, "--alter", "--delete-config", "log.cleaner.threads")
        assert (added.code, removed.code) == (0, 0)
        assert added.out == removed.out
        assert what in added.out
        assert "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_" in shown.out


def test_quotas(configs: RunTool) -> None:
    pair = ("--entity-type", "users", "--entity-name", "u1", "--entity-type", "clients")
    change = ("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=20.5")
    run = configs(*change, *pair, "--entity-default")
    assert run == (0, "Completed updating config for user u1.\n", "")
    run = configs("--describe", *pair, "--entity-default")
    assert run.out == (
        "Quota configs for user-principal 'u1', the default client-id are "
        "producer_byte_rate=1024.0, request_percentage=20.5\n"
    )
    assert configs("--user-defaults", *change).out == (
        "Completed updating default config for users in the cluster.\n"
    )
    for where in ((*pair, "--entity-default"), ("--user-defaults",)):
        names = "producer_byte_rate,request_percentage"
        assert configs("--alter", "--delete-config", names, *where).code == 0
        assert configs("--describe", *where) == (0, "", "")
    run = configs("--alter", "--add-config", "connection_creation_rate=1000", "--ip", "127.0.0.1")
    assert run.code == 0
    assert "are connection_creation_rate=1000.0\n" in configs("--describe", "--ip", "127.0.0.1").out
    names = ("--delete-config", "connection_creation_rate")
    assert configs("--alter", *names, "--ip", "127.0.0.1").code == 0


def test_credentials(configs: RunTool) -> None:
    alice = ("--entity-type", "users", "--entity-name", "tool-alice")
    change = ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=p,w]")
    assert configs(*change, *alice) == (0, "Completed updating config for user tool-alice.\n", "")
    assert configs("--describe", *alice).out == (
        "SCRAM credential configs for user-principal 'tool-alice' are "
        "SCRAM-SHA-256=iterations=8192\n"
    )
    assert configs("--alter", "--delete-config", "SCRAM-SHA-256", *alice).code == 0
    assert configs("--alter", "--delete-config", "SCRAM-SHA-256", *alice).code == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "exactly one action: --describe, --alter"),
        (("--describe",), "At least one entity type must be specified"),
        (("--topic", "t"), "exactly one action: --describe, --alter"),
        (("--describe", "--entity-type", "stars"), "Invalid entity type stars"),
        (("--describe", "--entity-type", "topics", "--entity-type", "users"), "Only 'users' and"),
        (("--describe", "--topic", "t", "--entity-type", "topics"), "--entity-{type,name,default}"),
        (("--describe", "--broker", "x"), "must be a valid integer broker id, but it is: x"),
        (("--describe", "--topic", "t", "--add-config", "a=b"), "can't be used with option"),
        (("--alter", "--topic", "t"), "At least one of --add-config, --add-config-file"),
        (("--alter", "--topic", "t", "--add-config", "a"), 'format "key=val"'),
        (("--alter", "--topic", "t", "--delete-config", "a b"), "Invalid character found"),
        (("--alter", "--entity-type", "topics", "--add-config", "a=b"), "an entity name must be"),
        (("--describe", "--topic", "t", "--zookeeper", "h:1"), "Only one of --bootstrap-server"),
        (("--describe", "--topic", "t", "--zk-tls-config-file", "f"), "Only the --zookeeper"),
        (("--alter", "--topic", "TOPIC", "--add-config", "x=y"), "x"),
        (("--alter", "--topic", "TOPIC", "--delete-config", "x"), "Invalid config(s): x"),
        (("--alter", "--topic", "TOPIC", "--add-config-file", "none.properties"), "none.prop"),
        (("--alter", "--user", "u", "--add-config", "request_percentage=a"), "Cannot parse quota"),
        (("--alter", "--user", "u", "--add-config", "rate=1"), "Unexpected config names: rate"),
        (
            ("--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=1,password=p]"),
            "Iterations 1 is less than the minimum 4096",
        ),
        (
            ("--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[pass=p]"),
            "Invalid credential property",
        ),
    ],
)
def test_failures(configs: RunTool, topic: str, words: tuple[str, ...], text: str) -> None:
    run = configs(*(topic if word == "TOPIC" else word for word in words))
    assert (run.code, run.out) == (1, "")
    assert len(run.err.splitlines()) == 1
    assert text in run.err

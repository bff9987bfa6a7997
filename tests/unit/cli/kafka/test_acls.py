"""`kafka-acls`, by an administrator of a broker with ACLs."""

from __future__ import annotations

import io

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner
from tests.unit.cli.secured import Secured


@pytest.fixture
def acls(secured: Secured, capsys: pytest.CaptureFixture[str]) -> RunTool:
    options = secured.options()
    run = runner("kafka-acls.sh", options["bootstrap.servers"], capsys)
    file = secured.file(options)
    return lambda *words: run("--command-config", file, *words)


def resource(name: str, kind: str = "TOPIC", pattern: str = "LITERAL") -> str:
    return f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"


def rule(principal: str, operation: str, host: str = "*", permission: str = "ALLOW") -> str:
    return (
        f"(principal={principal}, host={host}, operation={operation}, permissionType={permission})"
    )


def test_rules_of_a_topic(acls: RunTool) -> None:
    bob = ("--allow-principal", "User:Bob", "--allow-host", "198.51.100.0")
    run = acls("--add", *bob, "--operation", "Read", "--topic", "tool-acls")
    one = f"{resource('tool-acls')}`: \n \t{rule('User:Bob', 'READ', '198.51.100.0')} \n\n"
    assert run == (0, f"Adding ACLs for resource `{one}", "")
    assert acls("--list", "--topic", "tool-acls").out == f"Current ACLs for resource `{one}"
    run = acls("--list", "--topic", "tool-acls", "--principal", "User:Bob")
    assert run.out == f"ACLs for principal `User:Bob`\nCurrent ACLs for resource `{one}"
    run = acls("--remove", "--topic", "tool-acls", "--force")
    assert (run.code, run.out) == (0, "")
    assert acls("--list", "--topic", "tool-acls") == (0, "", "")


def test_what_producers_and_consumers_need(acls: RunTool) -> None:
    words = ("--allow-principal", "User:Eve", "--topic", "tool-", "--resource-pattern-type")
    run = acls("--add", *words, "prefixed", "--producer", "--consumer", "--group", "tool-group")
    assert run.code == 0
    listed = acls("--list", "--topic", "tool-x", "--resource-pattern-type", "match").out
    assert resource("tool-", pattern="PREFIXED") in listed
    found = sorted(line.strip() for line in listed.splitlines() if "principal=" in line)
    assert found == [
        rule("User:Eve", operation) for operation in ("CREATE", "DESCRIBE", "READ", "WRITE")
    ]
    group = acls("--list", "--group", "tool-group", "--resource-pattern-type", "any").out
    assert rule("User:Eve", "READ") in group
    words = ("--resource-pattern-type", "prefixed", "--force")
    assert acls("--remove", "--topic", "tool-", "--group", "tool-group", *words).code == 0


def test_removal_asks(acls: RunTool, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--topic", "tool-asks")
    deny = ("--deny-principal", "User:Mallory", "--operation", "Write")
    assert acls("--add", *deny, *words).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    run = acls("--remove", *words)
    assert run == (
        0,
        "Are you sure you want to delete all ACLs for resource filter "
        f"`{resource('tool-asks')}`? (y/n)\n",
        "",
    )
    assert rule("User:Mallory", "WRITE", permission="DENY") in acls("--list", *words).out
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    run = acls("--remove", *deny, *words)
    assert run.out.startswith("Are you sure you want to remove ACLs: \n \t(principal=User:Mallory")
    assert acls("--list", *words).out == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "exactly one action: --list, --add, --remove"),
        (("--add", "--topic", "t"), "You must specify one of: --allow-principal"),
        (("--add", "--allow-principal", "User:B", "--operation", "Read"), "one resource"),
        (("--add", "--allow-principal", "User:B", "--operation", "Sing"), "Sing"),
        (("--add", "--allow-principal", "User:B", "--producer"), "you must specify a --topic"),
        (("--add", "--allow-principal", "User:B", "--consumer", "--topic", "t"), "--group"),
        (
            (
                *("--add", "--allow-principal", "User:B", "--topic", "t", "--operation", "Read"),
                *("--resource-pattern-type", "match"),
            ),
            "is not valid when adding acls",
        ),
        (("--list", "--idempotent"), "--idempotent option is only available if --producer"),
        (("--list", "--allow-host", "h"), "can't be used with option"),
        (("--remove", "--principal", "User:B"), "--principal option is only available if --list"),
    ],
)
def test_misuse(acls: RunTool, words: tuple[str, ...], text: str) -> None:
    run = acls(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


def test_a_wrong_principal(acls: RunTool) -> None:
    run = acls("--add", "--allow-principal", "Bob", "--operation", "Read", "--topic", "t")
    assert run == (
        1,
        "Error while executing ACL command: expected a string in format "
        "principalType:principalName but got Bob\n",
        "",
    )


def test_a_wrong_password(secured: Secured, capsys: pytest.CaptureFixture[str]) -> None:
    options = secured.options()
    options["sasl.jaas.config"] = options["sasl.jaas.config"].replace("admin's", "wrong")
    run = runner("kafka-acls", options["bootstrap.servers"], capsys)(
        "--list", "--command-config", secured.file(options)
    )
    assert run.code == 1
    assert run.out.startswith("Error while executing ACL command: ")
    assert len(run.out.splitlines()) == 1
    assert run.err.startswith("check the user and the password (sasl.jaas.config) in ")

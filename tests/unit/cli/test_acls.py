"""`barnabas acls` against a real broker with an authorizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.cli.conftest import Barnabas, Run

from barnabas.cli.main import main
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def authorizing() -> Iterator[Cluster]:
    options = {
        "authorizer.class.name": "barnabas.security.acl.AclAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with Cluster(options=options) as cluster:
        yield cluster


@pytest.fixture
def acls(
    authorizing: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Barnabas]:
    """Run the command; every ACL is gone after the test."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", authorizing.bootstrap)

    def run(*words: str) -> Run:
        code = main(("acls", *words))
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    yield run
    assert run("remove", "--all").code == 0


def listed(acls: Any, *words: str) -> set[str]:
    """Return the ACLs as short strings."""
    done = acls("list", *words, "--json")
    assert done.code == 0, done.err
    return {
        " ".join(
            (
                each["permission"],
                each["principal"].removeprefix("User:"),
                each["operation"],
                f"{each['resource_type']}:{each['resource_name']}"
                + ("*" if each["pattern_type"] == "prefixed" else ""),
                each["host"],
            )
        )
        for each in json.loads(done.out)
    }


def test_add_list_and_remove(acls: Any) -> None:
    done = acls("add", "--allow", "alice", "--operation", "read", "--topic", "orders")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "1 ACLs added"
    acls("add", "--deny", "User:eve", "--operation", "all", "--topic", "*", "--host", "192.0.2.7")
    assert listed(acls) == {
        "allow alice read topic:orders *",
        "deny eve all topic:* 192.0.2.7",
    }
    header, line = acls("list", "--principal", "alice").out.splitlines()
    assert header.split() == [
        *("resource", "pattern", "principal", "permission", "operation", "host")
    ]
    assert line.split() == ["topic:orders", "literal", "User:alice", "allow", "read", "*"]
    assert listed(acls, "--topic", "orders", "--pattern", "match") == listed(acls)
    done = acls("remove", "--principal", "alice")
    assert done.out.splitlines()[-1] == "1 ACLs removed"
    assert listed(acls) == {"deny eve all topic:* 192.0.2.7"}
    assert acls("remove", "--topic", "other").out == "0 ACLs removed\n"


def test_what_a_producer_needs(acls: Any) -> None:
    """As Kafka's tool grants it."""
    words = ("--topic", "logs-", "--transactional-id", "logs-", "--pattern", "prefixed")
    assert acls("add", "--allow", "app", "--producer", "--idempotent", *words).code == 0
    assert listed(acls) == {
        "allow app write topic:logs-* *",
        "allow app describe topic:logs-* *",
        "allow app create topic:logs-* *",
        "allow app write transactional_id:logs-* *",
        "allow app describe transactional_id:logs-* *",
        "allow app idempotent_write cluster:kafka-cluster *",
    }


def test_what_a_consumer_needs(acls: Any) -> None:
    words = ("--topic", "orders", "--group", "app")
    assert acls("add", "--allow", "app", "--consumer", *words).code == 0
    assert listed(acls) == {
        "allow app read topic:orders *",
        "allow app describe topic:orders *",
        "allow app read group:app *",
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("add", "--operation", "read", "--topic", "t"), "no principal"),
        (("add", "--allow", "a", "--topic", "t"), "no --operation"),
        (("add", "--allow", "a", "--operation", "read"), "no resource"),
        (("add", "--allow", "a", "--producer"), "need a --topic"),
        (("add", "--allow", "a", "--consumer", "--topic", "t"), "needs a --group"),
        (("add", "--allow", "a", "--producer", "--topic", "t", "--user", "u"), "--user has no"),
        (("add", "--allow", "a", "--idempotent"), "--idempotent is for --producer"),
        (("remove",), "--all removes every ACL"),
        (("remove", "--all", "--topic", "t"), "give no other option"),
        (("list", "--why", "a", "fly", "topic:t"), "operation fly"),
        (("list", "--why", "a", "read", "planet:t"), "resource planet:t"),
    ],
)
def test_what_makes_no_acl(acls: Any, words: tuple[str, ...], reason: str) -> None:
    done = acls(*words)
    assert done.code == 1
    assert reason in done.err


def test_what_the_broker_rejects(acls: Any) -> None:
    done = acls("add", "--allow", "a", "--operation", "read", "--topic", "a/b")
    assert done.code == 1
    assert "must not contain a slash" in done.err
    both = acls("add", "--allow", "a", "--operation", "read", "--topic", "a/b", "--topic", "t")
    assert both.code == 1
    assert "not added: allow User:a read on topic:a/b" in both.out
    assert listed(acls) == {"allow a read topic:t *"}


def test_why(acls: Any) -> None:
    """The same rules as in the broker, with its super users."""

    def why(*words: str) -> str:
        done = acls("list", "--why", *words)
        assert done.code == 0, done.err
        text: str = done.out
        return text.strip()

    assert why("alice", "read", "topic:orders") == "denied: the resource has no ACLs"
    assert why("admin", "read", "topic:orders") == "allowed: super user"
    acls("add", "--allow", "alice", "--operation", "read", "--topic", "ord", "--pattern=prefixed")
    acls("add", "--deny", "*", "--operation", "read", "--topic", "orders", "--host", "0:0::1")
    allowed = "allowed: allow User:alice read on topic:ord (prefixed) from *"
    assert why("alice", "describe", "topic:orders") == allowed
    denied = "denied: deny User:* read on topic:orders (literal) from 0:0::1"
    assert why("alice", "read", "topic:orders", "--host", "::1") == denied
    assert why("bob", "read", "topic:orders") == "denied: no ACL matches"
    answer = json.loads(acls("list", "--why", "alice", "alter", "cluster", "--json").out)
    assert answer == {
        "allowed": False,
        "reason": "the resource has no ACLs",
        "rule": None,
        "super_users_known": True,
    }


def test_without_an_authorizer(barnabas: Any) -> None:
    done = barnabas("acls", "list")
    assert done.code == 1
    assert "SECURITY_DISABLED" in done.err

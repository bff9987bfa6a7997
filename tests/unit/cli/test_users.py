"""`barnabas users`: whom it adds can log in, whom it removes cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.cli.secured import Secured, jaas

PASSWORD, OTHER = 'se=cr"et\\', "hush-hush"


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user whom no other test has."""
    return f"ada-{abs(hash(request.node.name))}"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.touch(0o600)
    path.write_text(PASSWORD)
    return path


def lets_in(
    secured: Secured, command: Barnabas, user: str, password: str, mechanism: str = "SCRAM-SHA-512"
) -> bool:
    login = jaas(user, password, mechanism)
    options = {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    done = command(
        "topics", "list", "--command-config", secured.file({**secured.options(), **options})
    )
    assert done.code == 0 or "rejected the credentials" in done.err
    return done.code == 0


def test_a_user_comes_changes_and_goes(
    secured: Secured, command: Barnabas, as_admin: Barnabas, user: str, secret: Path
) -> None:
    added = as_admin("users", "add", user, "--password-file", str(secret))
    assert added == (0, f"user {user} added: SCRAM-SHA-256, SCRAM-SHA-512\n", "")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert lets_in(secured, command, user, PASSWORD, mechanism)
        assert not lets_in(secured, command, user, OTHER, mechanism)
    secret.write_text(OTHER)
    changed = as_admin("users", "set-password", user, "--password-file", str(secret))
    assert changed == (0, f"user {user} changed: SCRAM-SHA-256, SCRAM-SHA-512\n", "")
    assert lets_in(secured, command, user, OTHER)
    assert not lets_in(secured, command, user, PASSWORD)
    removed = as_admin("users", "remove", user)
    assert removed == (0, f"user {user} removed: SCRAM-SHA-256, SCRAM-SHA-512\n", "")
    assert not lets_in(secured, command, user, OTHER)


def test_users_are_listed_with_mechanisms_and_iterations(
    as_admin: Barnabas, user: str, secret: Path
) -> None:
    once = ("--mechanism", "SCRAM-SHA-512", "--iterations", "8192", "--json")
    done = as_admin("users", "add", user, "--password-file", str(secret), *once)
    assert json.loads(done.out) == {"user": user, "mechanisms": ["SCRAM-SHA-512"]}
    rows = [line.split() for line in as_admin("users", "list").out.splitlines()]
    assert rows[0] == ["user", "mechanism", "iterations"]
    assert [user, "SCRAM-SHA-512", "8192"] in rows
    assert json.loads(as_admin("users", "list", user, "--json").out) == [
        {"user": user, "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]}
    ]
    as_admin("users", "set-password", user, "--password-file", str(secret))
    assert "8192" in as_admin("users", "list", user).out, "the number of iterations is kept"
    also = ("--mechanism", "SCRAM-SHA-256", "--password-file", str(secret))
    assert as_admin("users", "add", user, *also).code == 0
    gone = as_admin("users", "remove", user, "--mechanism", "SCRAM-SHA-512", "--json")
    assert json.loads(gone.out) == [{"user": user, "mechanisms": ["SCRAM-SHA-512"]}]
    assert "SCRAM-SHA-512" not in as_admin("users", "list", user).out
    assert as_admin("users", "remove", user).code == 0


def test_what_cannot_be_done_is_said_before_a_password_is_asked_for(
    as_admin: Barnabas, user: str, secret: Path
) -> None:
    absent = f"barnabas users: user {user} does not exist; barnabas users list shows those that do"
    for words in (("set-password", user), ("remove", user)):
        assert as_admin("users", *words) == (1, "", f"{absent}\n")
    assert as_admin("users", "add", user, "--password-file", str(secret)).code == 0
    again = as_admin("users", "add", user)
    assert again.code == 1
    assert "has a password for SCRAM-SHA-256 and SCRAM-SHA-512" in again.err
    assert again.err.endswith(f"change it with: barnabas users set-password {user}\n")
    half = ("--mechanism", "SCRAM-SHA-256")
    assert as_admin("users", "remove", user, *half).code == 0
    twice = as_admin("users", "remove", user, *half)
    assert (twice.code, twice.err.split(": ", 1)[1]) == (
        1,
        f"user {user} has no password for SCRAM-SHA-256\n",
    )
    assert as_admin("users", "remove", user).code == 0


def test_a_user_who_is_not_there_is_named_among_others(as_admin: Barnabas, user: str) -> None:
    done = as_admin("users", "list", user)
    assert done.code == 1
    assert user in done.out
    done = as_admin("users", "list", user, "--json")
    assert json.loads(done.out)[0]["user"] == user
    assert "error" in json.loads(done.out)[0]


def test_only_who_may_alter_the_cluster_may(
    secured: Secured, command: Barnabas, secret: Path
) -> None:
    alice = ("--command-config", secured.file(secured.options("alice")))
    for words in (("list",), ("add", "eve", "--password-file", str(secret)), ("remove", "eve")):
        done = command("users", *words, *alice)
        assert done.code == 1
        assert "CLUSTER_AUTHORIZATION_FAILED" in done.err
        assert PASSWORD not in done.err


@pytest.mark.parametrize("number", ["4095", "16385", "x"])
def test_iterations_have_bounds(command: Barnabas, number: str) -> None:
    done = command("users", "add", "ada", "--iterations", number)
    assert done.code == 2
    assert number in done.err


def test_a_password_is_no_argument(command: Barnabas) -> None:
    for action in ("add", "set-password"):
        done = command("users", action, "ada", "--password", "hush")
        assert done.code == 2
        assert "unrecognized arguments: --password" in done.err

"""SCRAM credentials by request: set, deleted, described, and all that is refused."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire, wait_for

from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SALT = bytes(range(16))
MISSING, TWICE, UNACCEPTABLE = (
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.DUPLICATE_RESOURCE,
    ErrorCode.UNACCEPTABLE_CREDENTIAL,
)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path) as running:
        yield running


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with serving.connect() as connection:
        yield connection


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    digest = "sha256" if mechanism == 1 else "sha512"
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=SALT,
        salted_password=hashlib.pbkdf2_hmac(digest, b"pencil", SALT, 4096),
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(wire: Wire, *changes: Any) -> dict[str, int]:
    """Change credentials; return the error of each user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    return {result.user: result.error_code for result in wire.ask(request).results}


def described(wire: Wire, *names: str) -> dict[str, Any]:
    """Return mechanisms and iterations of users, or their error."""
    users = [UserName(name=name) for name in names] or None
    answer = wire.ask(DescribeUserScramCredentialsRequest(users=users))
    assert answer.error_code == 0
    return {
        result.user: result.error_code
        or {info.mechanism: info.iterations for info in result.credential_infos}
        for result in answer.results
    }


def stored(serving: Serving, user: str) -> dict[str, str]:
    get = serving.broker.parts.config_store.get("users", user)
    return asyncio.run_coroutine_threadsafe(get, serving.broker.loop).result(60)


def test_users_are_set_described_and_deleted(serving: Serving, wire: Wire) -> None:
    assert described(wire) == {}
    changes = upsertion("bob"), upsertion("alice", 2, 8192), upsertion("alice")
    assert alter(wire, *changes) == {"bob": 0, "alice": 0}
    assert list(described(wire)) == ["alice", "bob"], "sorted"
    assert described(wire, "alice") == {"alice": {1: 4096, 2: 8192}}
    assert alter(wire, deletion("alice", 2)) == {"alice": 0}
    assert described(wire) == {"alice": {1: 4096}, "bob": {1: 4096}}
    assert alter(wire, deletion("alice"), deletion("bob")) == {"alice": 0, "bob": 0}
    assert described(wire) == {}


def test_an_empty_list_means_all_users(wire: Wire) -> None:
    alter(wire, upsertion("alice"))
    answer = wire.ask(DescribeUserScramCredentialsRequest(users=[]))
    assert [result.user for result in answer.results] == ["alice"]


def test_credentials_are_stored_as_kafka_stores_them(serving: Serving, wire: Wire) -> None:
    name = "a b/ü~*"
    assert alter(wire, upsertion(name)) == {name: 0}
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    (text,) = stored(serving, name).values()
    assert text.startswith("salt=AAECAwQFBgcICQoLDA0ODw==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert salted.hex() not in text
    assert nodes.config_path("users", name) == "/config/users/a%20b%2F%C3%BC%7E%2A"


def test_quotas_of_the_user_stay(serving: Serving, wire: Wire) -> None:
    quota = {"producer_byte_rate": "1024"}
    put = serving.broker.parts.config_store.set("users", "alice", quota)
    asyncio.run_coroutine_threadsafe(put, serving.broker.loop).result(60)
    alter(wire, upsertion("alice"))
    assert set(stored(serving, "alice")) == {"producer_byte_rate", "SCRAM-SHA-256"}
    alter(wire, deletion("alice"))
    assert stored(serving, "alice") == quota


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ([upsertion("")], {"": UNACCEPTABLE}),
        ([upsertion("a\nb")], {"a\nb": UNACCEPTABLE}),
        ([upsertion("a", 1, 4095)], {"a": UNACCEPTABLE}),
        ([upsertion("a", 1, 16_385)], {"a": UNACCEPTABLE}),
        ([upsertion("a", 0)], {"a": ErrorCode.UNSUPPORTED_SASL_MECHANISM}),
        ([deletion("a", 3)], {"a": ErrorCode.UNSUPPORTED_SASL_MECHANISM}),
        ([upsertion("a"), upsertion("a")], {"a": TWICE}),
        ([upsertion("a"), deletion("a")], {"a": TWICE}),
        ([deletion("a")], {"a": MISSING}),
        ([upsertion("a"), deletion("a", 2)], {"a": MISSING}),
        ([upsertion("a"), upsertion("a", 2, 1)], {"a": UNACCEPTABLE}),
    ],
)
def test_changes_of_a_user_fail_together(
    wire: Wire, changes: list[Any], codes: dict[str, int]
) -> None:
    assert alter(wire, *changes, upsertion("other")) == {**codes, "other": 0}
    assert list(described(wire)) == ["other"]


def test_the_limits_of_iterations_are_included(wire: Wire) -> None:
    changes = upsertion("a", 1, 4096), upsertion("a", 2, 16_384)
    assert alter(wire, *changes) == {"a": 0}


def test_descriptions_that_are_refused(wire: Wire) -> None:
    alter(wire, upsertion("alice"))
    assert described(wire, "nobody", "alice") == {"alice": {1: 4096}, "nobody": MISSING}
    assert described(wire, "alice", "alice") == {"alice": TWICE}


class Nothing:
    """An authorizer that allows nothing."""

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        return False


def test_rights_are_needed(serving: Serving, wire: Wire) -> None:
    serving.broker.authorizer = Nothing()
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert alter(wire, upsertion("alice")) == {"alice": denied}
    answer = wire.ask(DescribeUserScramCredentialsRequest(users=None))
    assert answer.error_code == denied
    assert stored(serving, "alice") == {}


def test_only_the_controller_changes_them(serving: Serving, wire: Wire) -> None:
    serving.inside(lambda: setattr(serving.broker.controller, "_term", None))
    assert alter(wire, upsertion("alice")) == {"alice": ErrorCode.NOT_CONTROLLER}


def test_an_unreadable_credential_is_logged_without_it(serving: Serving, wire: Wire) -> None:
    configs = {"SCRAM-SHA-256": "salt=hush,stored_key=hush"}
    put = serving.broker.store_configs("users", "alice", configs)
    asyncio.run_coroutine_threadsafe(put, serving.broker.loop).result(60)
    wait_for(lambda: len(serving.lines.of()) == 2, "it is read again when the notice comes")
    for line in serving.lines.of():
        assert "user 'alice': credential for SCRAM-SHA-256 is unreadable" in line
        assert "hush" not in line
    serving.lines.clear()
    assert described(wire) == {}

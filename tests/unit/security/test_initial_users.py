"""Files of initial users: written and read without a password in them."""

from __future__ import annotations

import json

import pytest

from barnabas.model.errors import ConfigError
from barnabas.security.acl.binding import Binding, PatternType, Permission
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.initial_users import InitialUser, own_names
from barnabas.security.sasl.scram_credentials import MECHANISMS, ScramCredential


def user(acls: tuple[Binding, ...] = ()) -> InitialUser:
    return InitialUser.of_password("ada", "hush", lambda size: b"\x05" * size, acls)


def test_a_user_is_read_as_it_was_written() -> None:
    written = user(own_names("ada", "ada-"))
    text = written.encode()
    assert InitialUser.decode("f", text.encode()) == written
    assert "hush" not in text
    assert "stored_key" not in repr(written)


def test_the_credentials_are_those_of_the_password() -> None:
    for name, mechanism in MECHANISMS.items():
        expected = ScramCredential.of_password(mechanism, "hush", b"\x05" * 16)
        assert ScramCredential.decode(user().credentials[name]) == expected


def test_a_user_has_the_names_with_a_prefix_and_no_others() -> None:
    acls = own_names("ada", "ada-")
    assert {acl.pattern.name for acl in acls} == {"ada-"}
    assert {acl.pattern.pattern_type for acl in acls} == {PatternType.PREFIXED}
    assert {acl.entry.permission for acl in acls} == {Permission.ALLOW}
    assert {acl.entry.principal for acl in acls} == {"User:ada"}
    topic = {a.entry.operation for a in acls if a.pattern.resource_type is ResourceType.TOPIC}
    assert {Operation.READ, Operation.WRITE, Operation.CREATE} <= topic
    assert Operation.ALL not in topic
    assert ResourceType.CLUSTER not in {acl.pattern.resource_type for acl in acls}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"user": ""}, "the name of the user is empty"),
        ({"credentials": {"MD5": "x"}}, "mechanism MD5: must be SCRAM-SHA-256 or SCRAM-SHA-512"),
        ({"credentials": {"SCRAM-SHA-256": "salt=secret"}}, "credential cannot be read"),
        ({"credentials": None}, "is not the file of an initial user"),
        ({"acls": [{"resourceType": "Topic"}]}, "is not the file of an initial user"),
    ],
)
def test_what_cannot_be_used_is_named_and_not_shown(
    changes: dict[str, object], complaint: str
) -> None:
    data = json.dumps({**json.loads(user().encode()), **changes}).encode()
    with pytest.raises(ConfigError, match=complaint) as failed:
        InitialUser.decode("users/ada.json", data)
    assert "users/ada.json" in str(failed.value)
    assert "secret" not in str(failed.value)


def test_acls_that_cannot_be_stored_are_rejected() -> None:
    value = json.loads(user(own_names("ada", "ada-")).encode())
    value["acls"][0]["principal"] = "ada"
    with pytest.raises(ConfigError, match="must be written Type:name"):
        InitialUser.decode("f", json.dumps(value).encode())
    with pytest.raises(ConfigError, match="is not the file"):
        InitialUser.decode("f", b"no json")

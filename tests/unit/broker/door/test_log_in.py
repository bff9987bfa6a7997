"""Names and passwords, checked by the mechanisms of the listeners."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial

import pytest

from barnabas.admin.scram import UserScramCredentialUpsertion
from barnabas.broker.door.log_in import LISTENER, LogIn
from barnabas.client.sasl.scram_keys import scram_keys
from barnabas.metrics.catalogue.network import (
    FAILED_AUTHENTICATIONS,
    NETWORK_PROCESSOR,
    SUCCESSFUL_AUTHENTICATIONS,
)
from barnabas.metrics.registry import Registry
from barnabas.model.visitor import LoginRejected
from barnabas.security.audit import AuditLog
from barnabas.security.delegation_tokens import DelegationTokens
from barnabas.security.sasl.exchange import NewExchange
from barnabas.security.sasl.plain import Plain
from barnabas.security.sasl.scram import Scram, ScramSecrets
from barnabas.security.sasl.scram_credentials import MECHANISMS, ScramCredential


def scram(users: Mapping[str, str]) -> NewExchange:
    """Return SCRAM-SHA-256 with some users."""
    known = {}
    for user, password in users.items():
        made = UserScramCredentialUpsertion(user, "SCRAM-SHA-256", password)
        keys = scram_keys("sha256", made.salted_password)
        known[user] = ScramCredential(made.salt, keys.stored_key, keys.server_key, made.iterations)
    secrets = ScramSecrets(
        lambda mechanism, user: known.get(user),
        DelegationTokens(None, os.urandom),
        b"key",
        os.urandom,
    )
    return partial(Scram, MECHANISMS["SCRAM-SHA-256"], secrets)


BOTH: dict[str, NewExchange] = {
    "SCRAM-SHA-256": scram({"carol": "carol-secret", "x,y=z": "comma"}),
    "PLAIN": partial(Plain, {"alice": "alice-secret"}),
}


def check(
    name: str, password: str, mechanisms: Mapping[str, NewExchange] = BOTH
) -> tuple[str, Registry]:
    """Return who has logged in, or what is said instead, and what was counted."""
    registry = Registry()
    log_in = LogIn(
        lambda: mechanisms,
        lambda: 0,
        lambda: 0,
        AuditLog(lambda: 0, lambda ms, act: None),
        registry,
    )
    try:
        return asyncio.run(log_in.check(name, password, "192.0.2.7")).name, registry
    except LoginRejected as rejected:
        return str(rejected), registry


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", "alice-secret"), ("carol", "carol-secret"), ("x,y=z", "comma")],
)
def test_any_mechanism_may_know_a_user(name: str, password: str) -> None:
    who, registry = check(name, password)
    assert who == name
    assert registry.value(SUCCESSFUL_AUTHENTICATIONS, LISTENER, NETWORK_PROCESSOR) == 1
    assert registry.value(FAILED_AUTHENTICATIONS, LISTENER, NETWORK_PROCESSOR) == 0


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("alice", "carol-secret"),
        ("carol", "alice-secret"),
        ("eve", "x"),
        ("alice", ""),
        ("", "alice-secret"),
        ("alice\0", "alice-secret"),
        ("a\nb", "x"),
        ("x" * 300, "x"),
        ("alice", "x" * 2000),
    ],
)
def test_everybody_else_is_told_the_same(name: str, password: str) -> None:
    who, registry = check(name, password)
    assert who == "The name or the password is wrong."
    assert registry.value(FAILED_AUTHENTICATIONS, LISTENER, NETWORK_PROCESSOR) == 1


def test_without_a_mechanism_nobody_gets_in() -> None:
    assert check("alice", "alice-secret", {})[0] == "The name or the password is wrong."

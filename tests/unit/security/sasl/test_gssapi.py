"""GSSAPI: its steps with a context that the test plays, and what is missing without Kerberos."""

from __future__ import annotations

import sys

import pytest

from barnabas.client.sasl.kerberos_context import Refused
from barnabas.config.jaas import jaas_entry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login, Rejected, Step
from barnabas.security.sasl.gssapi import Gssapi, kerberos
from barnabas.security.sasl.kerberos_names import KerberosNames


class Played:
    """A context that accepts the token `ticket`, with or without an answer of its own."""

    def __init__(self, answer: bytes = b"", principal: str = "alice@EXAMPLE.COM") -> None:
        self._answer = answer
        self._principal = principal

    def accept(self, token: bytes) -> tuple[bytes, bool]:
        if token == b"half":
            return b"more", False
        if token != b"ticket":
            raise Refused("no such ticket")
        return self._answer, True

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"wrapped:"):
            raise Refused("not wrapped")
        return message.removeprefix(b"wrapped:")

    def names(self) -> tuple[str, str]:
        return self._principal, "EXAMPLE.COM"


def exchange(context: Played) -> Gssapi:
    return Gssapi(lambda: context, KerberosNames(["DEFAULT"]))


def send(server: Gssapi, message: bytes) -> Step:
    return server.step(message, 0).run()


OFFER = Step(b"wrapped:\x01\x01\x00\x00")


def test_a_login_without_mutual_authentication() -> None:
    """As Java's clients do it."""
    server = exchange(Played())
    assert send(server, b"ticket") == OFFER
    done = send(server, b"wrapped:\x01\x01\x00\x00alice@EXAMPLE.COM")
    assert done == Step(None, Login("alice"))


def test_a_login_with_mutual_authentication() -> None:
    server = exchange(Played(b"proof"))
    assert send(server, b"half") == Step(b"more")
    assert send(server, b"ticket") == Step(b"proof")
    assert send(server, b"") == OFFER
    assert send(server, b"wrapped:\x01\x00\x00\x00").login == Login("alice")


@pytest.mark.parametrize(
    "choice",
    [b"plain", b"wrapped:", b"wrapped:\x01", b"wrapped:\x02\x01\x00\x00", b"wrapped:\0\0\0\0"],
)
def test_other_choices_are_rejected(choice: bytes) -> None:
    server = exchange(Played())
    send(server, b"ticket")
    with pytest.raises(Rejected):
        send(server, choice)


def test_bad_tickets_are_rejected() -> None:
    with pytest.raises(Rejected, match="no such ticket"):
        send(exchange(Played()), b"forged")


def test_principals_without_a_name_are_rejected() -> None:
    server = exchange(Played(principal="alice@OTHER.COM"))
    send(server, b"ticket")
    with pytest.raises(Rejected, match="no rule applies"):
        send(server, b"wrapped:\x01\x01\x00\x00")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"install barnabas\[kerberos\]"):
        kerberos(jaas_entry('X required keyTab="k" principal="p";', "x"), "IN")


def test_keytab_and_principal_are_needed() -> None:
    pytest.importorskip("gssapi")
    for entry in (None, jaas_entry('X required keyTab="k";', "x")):
        with pytest.raises(ConfigError, match="needs keyTab and principal"):
            kerberos(entry, "IN")

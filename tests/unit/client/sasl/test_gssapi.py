"""GSSAPI of clients: its steps with a context that the test plays, and what options demand.

tests/compat/test_gssapi.py has a real KDC.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.gssapi import Gssapi, kerberos, service_name
from barnabas.client.sasl.kerberos_context import Refused
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login, Step
from barnabas.security.sasl.gssapi import Gssapi as Server
from barnabas.security.sasl.kerberos_names import KerberosNames


class Client:
    """A context that needs as many answers of the broker as the test wants."""

    def __init__(self, answers: int = 1) -> None:
        self.answers = answers

    def step(self, token: bytes | None) -> tuple[bytes, bool]:
        if token is None:
            return b"ticket", self.answers == 0
        if token != b"proof":
            raise Refused("that is no proof")
        self.answers -= 1
        return b"", self.answers == 0

    def wrap(self, message: bytes) -> bytes:
        return b"client:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"broker:"):
            raise Refused("not from the broker")
        return message.removeprefix(b"broker:")


class Broker:
    """The other side: with an answer, or without one, as Java's clients want it."""

    def __init__(self, answer: bytes = b"proof") -> None:
        self.answer = answer

    def accept(self, token: bytes) -> tuple[bytes, bool]:
        assert token == b"ticket"
        return self.answer, True

    def wrap(self, message: bytes) -> bytes:
        return b"broker:" + message

    def unwrap(self, message: bytes) -> bytes:
        return message.removeprefix(b"client:")

    def names(self) -> tuple[str, str]:
        return "alice@EXAMPLE.COM", "EXAMPLE.COM"


def converse(client: Client, broker: Broker) -> Login | None:
    server = Server(lambda: broker, KerberosNames(["DEFAULT"]))

    async def run() -> Login | None:
        conversation = Gssapi(lambda: client)
        message = await conversation.first()
        while True:
            step: Step = server.step(message, 0).run()
            message = await conversation.next(step.answer or b"")
            if conversation.done:
                return step.login

    return asyncio.run(run())


@pytest.mark.parametrize(("client", "broker"), [(Client(1), Broker()), (Client(0), Broker(b""))])
def test_both_sides_agree_on_no_layer(client: Client, broker: Broker) -> None:
    assert converse(client, broker) == Login("alice")


@pytest.mark.parametrize(
    ("challenges", "why"),
    [
        ([b"else"], "that is no proof"),
        ([b"proof", b"else"], "not from the broker"),
        ([b"proof", b"broker:\x06\x00\x00\x00"], "demands a security layer"),
        ([b"proof", b"broker:\x01"], "demands a security layer"),
    ],
)
def test_a_broker_that_breaks_the_rules_is_refused(challenges: list[bytes], why: str) -> None:
    async def run() -> None:
        conversation = Gssapi(Client)
        await conversation.first()
        for challenge in challenges:
            await conversation.next(challenge)

    with pytest.raises(AuthenticationFailedError, match=f"^Kerberos: .*{why}"):
        asyncio.run(run())


def test_without_a_ticket_the_reason_is_told() -> None:
    def no_ticket() -> Client:
        raise Refused("no credentials cache found")

    with pytest.raises(AuthenticationFailedError, match="Kerberos: no credentials cache found"):
        asyncio.run(Gssapi(no_ticket).first())


def test_the_service_name_is_given_once() -> None:
    assert service_name({}, "o", None) == "kafka"
    assert service_name({}, "o", "broker") == "broker"
    assert service_name({"serviceName": "broker"}, "o", None) == "broker"
    assert service_name({"serviceName": "broker"}, "o", "broker") == "broker"
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name=a: o has serviceName=b"):
        service_name({"serviceName": "b"}, "o", "a")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"install barnabas\[kerberos\]"):
        kerberos({}, "o", None)


class Library:
    """What the package gssapi is asked for."""

    class NameType:
        kerberos_principal = "principal"
        hostbased_service = "service"

    class MechType:
        kerberos = "krb5"

    class exceptions:
        GSSError = OSError

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def Name(self, name: str, kind: str) -> tuple[str, str]:
        return name, kind

    def Credentials(self, **asked: Any) -> str:
        self.asked.append(asked)
        return "credentials"

    def SecurityContext(self, **asked: Any) -> str:
        self.asked.append(asked["name"])
        return "context"


@pytest.mark.parametrize(
    ("jaas", "principal", "store"),
    [
        ({}, None, None),
        ({"useTicketCache": "true"}, None, None),
        (
            {"ticketCache": "/tmp/t", "principal": "a@R"},
            ("a@R", "principal"),
            {"ccache": "/tmp/t"},
        ),
        (
            {"useKeyTab": "True", "keyTab": "/k", "principal": "a@R"},
            ("a@R", "principal"),
            {"client_keytab": "/k", "ccache": "MEMORY:barnabas-a@R-/k"},
        ),
    ],
)
def test_tickets_come_from_a_keytab_or_a_cache(
    jaas: dict[str, str], principal: Any, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library()
    monkeypatch.setitem(sys.modules, "gssapi", library)  # type: ignore[arg-type]
    kerberos(jaas, "o", None)("broker1")
    kerberos(jaas, "o", None, "given")("broker1")
    credentials = {"name": principal, "usage": "initiate", "store": store}
    assert library.asked == [credentials, ("kafka@broker1", "service"), credentials, "given"]


@pytest.mark.parametrize("given", ["keyTab", "principal"])
def test_a_keytab_needs_a_principal(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", Library())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="o: useKeyTab=true needs keyTab and principal"):
        kerberos({"useKeyTab": "true", given: "x"}, "o", None)

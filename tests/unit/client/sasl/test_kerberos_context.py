"""What the package gssapi says, in the words of both sides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.client.sasl.kerberos_context import KerberosContext, Refused


class Failure(Exception):
    """An error of Kerberos."""


class Context:
    """A context that is complete with its second step."""

    complete = False

    def step(self, token: bytes | None) -> bytes | None:
        if token == b"bad":
            raise Failure("no such ticket")
        self.complete = token is not None
        return b"ticket" if token is None else None

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        if message == b"bad":
            raise Failure("no key")
        return SimpleNamespace(message=bytearray(b"<" + message))

    def unwrap(self, message: bytes) -> Any:
        if not message.startswith(b"<"):
            raise Failure("not wrapped")
        return SimpleNamespace(message=bytearray(message[1:]))


def library(begin: Any) -> Any:
    return SimpleNamespace(exceptions=SimpleNamespace(GSSError=Failure), SecurityContext=begin)


def test_tokens_and_messages_are_bytes() -> None:
    asked: list[dict[str, object]] = []

    def begin(**arguments: object) -> Context:
        asked.append(arguments)
        return Context()

    context = KerberosContext(library(begin), usage="initiate")
    assert asked == [{"usage": "initiate"}]
    assert context.step(None) == (b"ticket", False)
    assert context.step(b"answer") == (b"", True)
    assert context.unwrap(context.wrap(b"message")) == b"message"


def test_what_kerberos_refuses_is_one_error() -> None:
    context = KerberosContext(library(Context))
    with pytest.raises(Refused, match="no such ticket"):
        context.step(b"bad")
    with pytest.raises(Refused, match="no key"):
        context.wrap(b"bad")
    with pytest.raises(Refused, match="not wrapped"):
        context.unwrap(b"bad")

    def begin() -> Context:
        raise Failure("no credentials")

    with pytest.raises(Refused, match="no credentials"):
        KerberosContext(library(begin))

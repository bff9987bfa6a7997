"""PLAIN: name and password in one message, and Kafka's texts for what is wrong."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.exchange import Login, Rejected, Step
from barnabas.security.sasl.plain import Plain, plain_users

USERS = {"alice": "secret", "bob": "pässwörd", "": "nobody", "eve": ""}


def test_users_are_options_with_a_prefix() -> None:
    options = {"username": "admin", "password": "x", "user_alice": "secret", "user_b_c": "d"}
    assert plain_users(options) == {"alice": "secret", "b_c": "d"}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("\0alice\0secret", "alice"),
        ("alice\0alice\0secret", "alice"),
        ("\0bob\0pässwörd", "bob"),
    ],
)
def test_the_right_password_lets_in(message: str, name: str) -> None:
    assert Plain(USERS).step(message.encode(), 0) == Step(b"", Login(name))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0nobody", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0eve\0x", "Authentication failed: Invalid username or password"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0carol\0secret", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0alice\0\xff\xfe", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
    ],
)
def test_everything_else_is_rejected_with_kafkas_text(message: bytes, told: str) -> None:
    with pytest.raises(Rejected) as failure:
        Plain(USERS).step(message, 0)
    assert failure.value.told == told
    assert "secret" not in str(failure.value)
    assert "wrong" not in str(failure.value).replace("wrong password", "")


def test_names_cannot_forge_log_lines() -> None:
    with pytest.raises(Rejected) as failure:
        Plain(USERS).step(b"\0x\nERROR all is lost\x1b" + b"y" * 5000 + b"\0p", 0)
    assert "\n" not in str(failure.value)
    assert "\x1b" not in str(failure.value)
    assert len(str(failure.value)) < 400

"""SCRAM credentials: Kafka's stored form, by vectors, and the users of a broker."""

from __future__ import annotations

from base64 import b64decode

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.security.sasl.scram_credentials import (
    SHA_256,
    SHA_512,
    ScramCredential,
    ScramCredentials,
)

STORED = (
    "salt=W22ZaJ0SNY7soEsUEjb6gQ==,"
    "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
    "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,"
    "iterations=4096"
)


def test_a_password_gives_what_kafka_stores() -> None:
    """The vector of RFC 7677."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    made = ScramCredential.of_password(SHA_256, "pencil", salt)
    assert made.encode() == STORED
    assert ScramCredential.decode(STORED) == made


def test_nothing_of_it_is_shown() -> None:
    made = ScramCredential.decode(STORED)
    assert repr(made) == "ScramCredential([hidden], iterations=4096)"


@pytest.mark.parametrize(
    "text",
    ["", "secret", STORED.replace("salt", "pepper"), STORED.replace("4096", "many"), STORED + "x"],
)
def test_what_cannot_be_read_is_not_shown(text: str) -> None:
    with pytest.raises(InvalidValueError) as failure:
        ScramCredential.decode(text)
    assert str(failure.value) == "a stored SCRAM credential cannot be read"


def test_a_users_credentials_are_replaced_as_a_whole() -> None:
    credentials = ScramCredentials()
    assert credentials.set_user("bob", {SHA_512.name: STORED, "producer_byte_rate": "5"}) == []
    assert credentials.set_user("alice", {SHA_256.name: STORED}) == []
    assert credentials.users == ["alice", "bob"]
    assert credentials.find(SHA_256.name, "alice") == ScramCredential.decode(STORED)
    assert credentials.find(SHA_512.name, "alice") is None
    assert list(credentials.of_user("bob")) == [SHA_512.name]
    assert credentials.set_user("alice", {"producer_byte_rate": "5"}) == []
    assert credentials.users == ["bob"]


def test_an_unreadable_credential_lets_nobody_in() -> None:
    credentials = ScramCredentials()
    credentials.set_user("alice", {SHA_256.name: STORED, SHA_512.name: STORED})
    assert credentials.set_user("alice", {SHA_256.name: "?", SHA_512.name: STORED}) == [
        SHA_256.name
    ]
    assert credentials.find(SHA_256.name, "alice") is None
    assert credentials.find(SHA_512.name, "alice") is not None

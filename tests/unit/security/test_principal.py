"""Principals, as options and ACLs write them."""

from __future__ import annotations

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.security.principal import Principal, parse_principal


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("User:alice", Principal("User", "alice")),
        ("User:CN=a,O=b:c", Principal("User", "CN=a,O=b:c")),
        ("Group:", Principal("Group", "")),
    ],
)
def test_a_principal_is_read_as_it_is_written(text: str, principal: Principal) -> None:
    assert parse_principal(text) == principal
    assert str(principal) == text


@pytest.mark.parametrize("text", ["alice", "", ":alice"])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(InvalidValueError, match="must be written Type:name"):
        parse_principal(text)

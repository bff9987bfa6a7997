"""What a refused client is told, and what an operator is shown of a client's text."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.exchange import SHOWN_MAX, Rejected, shown


def test_the_reason_for_the_log_is_not_what_the_client_is_told() -> None:
    rejected = Rejected("user 'alice' has no credential", "Authentication failed")
    assert str(rejected) == "user 'alice' has no credential"
    assert rejected.told == "Authentication failed"
    assert Rejected("why").told is None


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31mb", "\x00", "a\r\nlog line: forged"])
def test_a_clients_text_cannot_forge_a_log_line(text: str) -> None:
    assert shown(text).isprintable()


def test_a_long_text_is_cut() -> None:
    assert len(shown("x" * 10_000)) <= SHOWN_MAX + 3
    assert shown("short") == "'short'"

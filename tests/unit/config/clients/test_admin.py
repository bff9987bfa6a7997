"""Options of admin clients: what they add, and what they refuse by name."""

from __future__ import annotations

import pytest

from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.errors import ConfigError


def test_both_spellings_and_the_default() -> None:
    assert parse_client_options(AdminOptions, {}).default_api_timeout_ms == 60_000
    dotted = parse_client_options(AdminOptions, {"default.api.timeout.ms": "5"})
    assert dotted.default_api_timeout_ms == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"default_api_timeout_ms": 0}, r"default\.api\.timeout\.ms"),
        ({"default_api_timeout": 5}, "default_api_timeout_ms"),
        ({"bootstrap.controllers": "c:9093"}, r"bootstrap\.servers"),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_client_options(AdminOptions, given)

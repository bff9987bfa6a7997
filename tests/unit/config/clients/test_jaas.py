"""Lines of JAAS: what they say, and what cannot be read, without showing it."""

from __future__ import annotations

import pytest

from barnabas.config.clients.jaas import jaas_options
from barnabas.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('a.b.C required username="u" password="p";', {"username": "u", "password": "p"}),
        ("a.b.C required\n username='u'\n password='p' ;", {"username": "u", "password": "p"}),
        (r'C required password="q\"u;o=te";', {"password": 'q"u;o=te'}),
        ("C optional debug=true;", {"debug": "true"}),
        ("C required;", {}),
    ],
)
def test_names_and_values_are_read(text: str, options: dict[str, str]) -> None:
    assert jaas_options(text) == options


@pytest.mark.parametrize(
    "text",
    ["", "C required", 'username="u";', 'C required password="open;', "C required secret;"],
)
def test_what_cannot_be_read_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config=\[hidden\]") as failure:
        jaas_options(text)
    assert "secret" not in str(failure.value)

"""The endpoint that issues tokens: what it is asked, and what its refusals become."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.client.sasl.token_server import CLIENT, SECRET, TokenServer, token_server

from barnabas.client.errors import AuthenticationFailedError, ConnectError
from barnabas.client.sasl.token_endpoint import TokenEndpoint, TokenFile, token_endpoint
from barnabas.model.errors import ConfigError

JAAS = {"clientId": CLIENT, "clientSecret": SECRET}


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with token_server(lambda: "a.b.c") as running:
        yield running


def test_a_token_is_asked_for_by_client_credentials(server: TokenServer) -> None:
    assert TokenEndpoint(server.url, CLIENT, SECRET).fetch() == "a.b.c"
    assert TokenEndpoint(server.url, CLIENT, SECRET, "read write").fetch() == "a.b.c"
    assert server.asked == [
        {"grant_type": ["client_credentials"]},
        {"grant_type": ["client_credentials"], "scope": ["read write"]},
    ]


def test_wrong_credentials_are_refused_without_showing_them(server: TokenServer) -> None:
    endpoint = TokenEndpoint(server.url, CLIENT, "hush-hush")
    with pytest.raises(AuthenticationFailedError, match=r"status 401 \(invalid_client\)$") as said:
        endpoint.fetch()
    assert "hush-hush" not in str(said.value) + repr(endpoint)
    assert "Basic" not in str(said.value)


@pytest.mark.parametrize(
    ("status", "body", "kind", "why"),
    [
        (400, b'{"error":"invalid_scope"}', AuthenticationFailedError, "400 (invalid_scope)"),
        (403, b"<html>", AuthenticationFailedError, "status 403"),
        (404, b'{"error":"What you sent: my-secret"}', AuthenticationFailedError, "status 404"),
        (408, b"", ConnectError, "status 408"),
        (429, b"", ConnectError, "status 429"),
        (500, b"", ConnectError, "status 500"),
        (501, b"", AuthenticationFailedError, "status 501"),
        (503, b"", ConnectError, "status 503"),
        (200, b"", AuthenticationFailedError, "has no access_token"),
        (200, b"[]", AuthenticationFailedError, "has no access_token"),
        (200, b'{"access_token":" "}', AuthenticationFailedError, "has no access_token"),
        (200, b'{"access_token":7}', AuthenticationFailedError, "has no access_token"),
    ],
)
def test_failures_are_final_or_may_pass(
    server: TokenServer, status: int, body: bytes, kind: type[Exception], why: str
) -> None:
    server.failures = [(status, body)]
    with pytest.raises(kind, match=re.escape(why) + "$") as said:
        TokenEndpoint(server.url, CLIENT, SECRET).fetch()
    assert SECRET not in str(said.value)


def test_a_server_that_is_away_may_come_back() -> None:
    with token_server(lambda: "a.b.c") as gone:
        pass
    with pytest.raises(ConnectError, match=r"token\.endpoint\.url=http.*refused"):
        TokenEndpoint(gone.url, CLIENT, SECRET).fetch()


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    source = token_endpoint(path.as_uri(), {}, "o", connect_ms_max=None, read_ms_max=None, tls=None)
    assert isinstance(source, TokenFile)
    with pytest.raises(ConnectError, match="No such file"):
        source.fetch()
    for text in ("a.b.c", "d.e.f"):
        path.write_text(text + "\n")
        assert source.fetch() == text
    path.write_bytes(b"\xff")
    with pytest.raises(ConnectError, match="no token"):
        source.fetch()


def test_the_entry_must_have_credentials() -> None:
    for missing in JAAS:
        jaas = {name: value for name, value in JAAS.items() if name != missing}
        with pytest.raises(ConfigError, match=f"^some.jaas: needs {missing} for") as said:
            token_endpoint(
                "http://h/", jaas, "some.jaas", connect_ms_max=None, read_ms_max=None, tls=None
            )
        assert SECRET not in str(said.value)
    source = token_endpoint(
        "http://h/",
        {**JAAS, "scope": "s"},
        "some.jaas",
        connect_ms_max=500,
        read_ms_max=None,
        tls=None,
    )
    assert source == TokenEndpoint("http://h/", CLIENT, SECRET, "s", 0.5, 10.0)

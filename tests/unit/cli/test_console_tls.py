"""The console over TLS: a browser's certificate is its log-in, and the same ACLs apply."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority, Issued
from tests.unit.broker.serving import Serving

from barnabas.cli import console_tls
from barnabas.cli.console_part import BrokerConsole, console_address
from barnabas.model.errors import ConfigError

for _package in ("starlette", "jinja2", "uvicorn", "h11", "httpx"):
    pytest.importorskip(_package, reason="the console's packages are not installed")

import httpx  # noqa: E402

AUTHORITY = Authority()
TLS = "listener.name.console.ssl."


def options(directory: Path, **more: str) -> dict[str, str]:
    """Return the options of a broker whose console has a certificate and asks for one."""
    AUTHORITY.issue("console").write_pem(directory / "console.pem")
    AUTHORITY.write(directory / "ca.pem")
    return {
        "barnabas.console.listener": "127.0.0.1:0",
        "barnabas.console.ssl.enable": "true",
        f"{TLS}keystore.type": "PEM",
        f"{TLS}keystore.location": str(directory / "console.pem"),
        f"{TLS}truststore.type": "PEM",
        f"{TLS}truststore.location": str(directory / "ca.pem"),
        f"{TLS}client.auth": "requested",
        f"{TLS}principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    } | more


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Serving, BrokerConsole]]:
    """A broker with an authorizer, and its console over TLS."""
    (tmp_path / "files").mkdir()
    with Serving(tmp_path / "data", options(tmp_path / "files")) as running:
        address = console_address(running.broker.options)
        assert address is not None
        console = running.inside(lambda: BrokerConsole(running.broker, address))
        loop = running.broker.loop
        asyncio.run_coroutine_threadsafe(console.start(), loop).result(60)
        try:
            yield running, console
        finally:
            asyncio.run_coroutine_threadsafe(console.stop(), loop).result(60)
            running.lines.clear()


def browser(console: BrokerConsole, directory: Path, own: Issued | None = None) -> httpx.Client:
    """Return a browser with a certificate, or none."""
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if own is not None:
        context.load_cert_chain(str(own.write_pem(directory / "browser.pem")))
    return httpx.Client(verify=context, base_url=console.server.url, timeout=60)


def test_a_certificate_names_the_user(
    served: tuple[Serving, BrokerConsole], tmp_path: Path
) -> None:
    _, console = served
    assert console.server.url.startswith("https://")
    with browser(console, tmp_path, AUTHORITY.issue("admin")) as admin:
        page = admin.get("/").text
        assert "User:admin" in page
        assert "Log out" not in page
        assert admin.get("/acls").status_code == 200
    with browser(console, tmp_path, AUTHORITY.issue("mallory")) as stranger:
        page = stranger.get("/brokers").text
        assert "User:mallory" in page
        assert "denied" in page.lower() or "authorization" in page.lower()
    with browser(console, tmp_path) as nobody:
        assert "<span>User:" not in nobody.get("/").text


def test_a_certificate_that_no_rule_matches_is_not_let_in(
    served: tuple[Serving, BrokerConsole], tmp_path: Path
) -> None:
    with browser(served[1], tmp_path, AUTHORITY.issue("R2-D2")) as refused:
        answer = refused.get("/")
    assert answer.status_code == 403
    assert "no rule of ssl.principal.mapping.rules matches 'CN=R2-D2'" in answer.text


def test_a_foreign_certificate_ends_the_handshake(
    served: tuple[Serving, BrokerConsole], tmp_path: Path
) -> None:
    with (
        browser(served[1], tmp_path, Authority("another CA").issue("admin")) as foreign,
        pytest.raises(httpx.HTTPError),
    ):
        foreign.get("/")


def test_a_renewed_certificate_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_tls, "RENEWAL_S", 0.05)
    given = options(tmp_path)
    with Serving(tmp_path / "data", given) as running:
        address = console_address(running.broker.options)
        assert address is not None
        console = running.inside(lambda: BrokerConsole(running.broker, address))
        loop = running.broker.loop
        asyncio.run_coroutine_threadsafe(console.start(), loop).result(60)
        try:
            before = shown_certificate(console)
            AUTHORITY.issue("console").write_pem(tmp_path / "console.pem")
            deadline = time.monotonic() + 30
            while shown_certificate(console) == before:
                assert time.monotonic() < deadline
        finally:
            asyncio.run_coroutine_threadsafe(console.stop(), loop).result(60)
            running.lines.clear()


def shown_certificate(console: BrokerConsole) -> str:
    """Return the certificate that the console shows."""
    return ssl.get_server_certificate((console.server.address.host, console.server.address.port))


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    given = options(tmp_path, **{f"{TLS}keystore.location": str(tmp_path / "absent.pem")})
    with Serving(tmp_path / "data", given) as running:
        address = console_address(running.broker.options)
        assert address is not None
        with pytest.raises(ConfigError, match=r"barnabas\.console\.ssl\.enable=true: .*absent"):
            running.inside(lambda: BrokerConsole(running.broker, address))


def test_with_tls_others_may_connect(tmp_path: Path) -> None:
    given = options(tmp_path, **{"barnabas.console.listener": "0.0.0.0:8443"})
    with Serving(tmp_path / "data", given) as running:
        assert str(console_address(running.broker.options)) == "0.0.0.0:8443"

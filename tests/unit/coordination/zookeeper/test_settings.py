"""Settings of a ZooKeeper session: addresses, credentials and TLS, checked before any use."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.coordination.zookeeper.settings import parse_connect, settings_of
from barnabas.model.errors import ConfigError
from barnabas.testing.zookeeper import ZooKeeperServer, free_port


def options(**more: str) -> BrokerOptions:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return BrokerOptions.parse({"zookeeper.connect": "zk:2181/kafka", **named})


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk", ("zk:2181",), ""),
        ("a:1,b:2", ("a:1", "b:2"), ""),
        ("a:1, b/", ("a:1", "b:2181"), ""),
        ("[::1]:2181/deep/er", ("[::1]:2181",), "/deep/er"),
    ],
)
def test_addresses(text: str, servers: tuple[str, ...], chroot: str) -> None:
    """Ports default to ZooKeeper's; the chroot stands behind the last server."""
    assert parse_connect(text) == (servers, chroot)


@pytest.mark.parametrize("text", ["", "a:b", "a:1,,b:1", "a:99999", "a:1//x", "a:1/x/../y", "::1"])
def test_addresses_that_are_none(text: str) -> None:
    """The error names the option and the value."""
    with pytest.raises(ConfigError, match=r"zookeeper\.connect="):
        parse_connect(text)


def test_timeouts_and_credentials() -> None:
    """The connection timeout defaults to the session's; secrets do not show."""
    plain = settings_of(options(zookeeper_session_timeout_ms="7000"))
    assert (plain.session_timeout_ms, plain.connection_timeout_ms) == (7000, 7000)
    assert (plain.in_flight_max, plain.tls, plain.set_acl) == (10, None, False)
    assert str(plain) == "zk:2181/kafka"
    known = settings_of(
        options(
            zookeeper_set_acl="true",
            barnabas_zookeeper_credentials="me:secret",
            zookeeper_max_in_flight_requests="3",
            zookeeper_connection_timeout_ms="5",
        )
    )
    assert (known.credentials, known.set_acl, known.in_flight_max) == ("me:secret", True, 3)
    assert known.connection_timeout_ms == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"zookeeper_set_acl": "true"}, "zookeeper.set.acl=true requires credentials"),
        ({"barnabas_zookeeper_credentials": "me"}, r"=\[hidden\]: must be user:password"),
        ({"zookeeper_ssl_keystore_type": "JKS"}, "keystore.type=JKS: only PEM"),
        ({"zookeeper_ssl_truststore_location": "/none"}, "truststore.location=/none: not a usable"),
        ({"zookeeper_ssl_keystore_location": "/none"}, "keystore.location=/none: not a usable"),
        ({"zookeeper_ssl_enabled_protocols": "SSLv3"}, "enabled.protocols=SSLv3"),
        ({"zookeeper_ssl_cipher_suites": "NONE_SUCH"}, "cipher.suites=NONE_SUCH"),
    ],
)
def test_what_cannot_be_used_is_refused(given: dict[str, str], said: str) -> None:
    """Each refusal names the option and its value."""
    with pytest.raises(ConfigError, match=said):
        settings_of(options(zookeeper_ssl_client_enable="true", **given))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1, signed by itself, in one PEM file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, own = folder / "key.pem", folder / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(own)]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text(key.read_text() + own.read_text())
    return both


def test_a_session_over_tls(zookeeper_classpath: str, certificate: Path) -> None:
    """Both sides prove themselves; without the right trust there is no session."""
    pytest.importorskip("kazoo")
    from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination

    port = free_port()
    server = ZooKeeperServer(
        zookeeper_classpath,
        settings={
            "secureClientPort": str(port),
            "ssl.keyStore.location": str(certificate),
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": str(certificate),
            "ssl.trustStore.type": "PEM",
        },
        java_options=[
            "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"
        ],
    )

    def given(**more: str) -> BrokerOptions:
        return options(
            zookeeper_connect=f"127.0.0.1:{port}/tls",
            zookeeper_ssl_client_enable="true",
            zookeeper_ssl_keystore_location=str(certificate),
            zookeeper_session_timeout_ms="30000",
            **more,
        )

    async def story() -> None:
        trusting = ZooKeeperCoordination(
            settings_of(
                given(
                    zookeeper_ssl_truststore_location=str(certificate),
                    zookeeper_connection_timeout_ms="60000",
                )
            )
        )
        await trusting.start()
        await trusting.create("/a", b"x" * 100_000)
        assert (await trusting.get("/a"))[0] == b"x" * 100_000
        await trusting.close()
        wary = ZooKeeperCoordination(settings_of(given(zookeeper_connection_timeout_ms="300")))
        with pytest.raises(ServiceUnavailable):
            await wary.start()

    with server:
        asyncio.run(story())

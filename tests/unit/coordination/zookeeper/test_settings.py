"""Settings of a ZooKeeper session: addresses, credentials and TLS, checked before any use."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.certificates import Authority

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.coordination.zookeeper.settings import SaslLogin, parse_connect, settings_of
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
        ({"zookeeper_ssl_keystore_type": "BKS"}, "zookeeper.ssl.keystore.type=BKS: must be JKS"),
        ({"zookeeper_ssl_truststore_type": "X"}, "zookeeper.ssl.truststore.type=X: must be JKS"),
        (
            {"zookeeper_ssl_truststore_location": "/none"},
            "zookeeper.ssl.truststore.location=/none: No such file",
        ),
        (
            {"zookeeper_ssl_keystore_location": "/none"},
            "zookeeper.ssl.keystore.location=/none: No such file",
        ),
        ({"zookeeper_ssl_protocol": "SSLv3"}, "zookeeper.ssl.protocol=SSLv3,TLSv1.3: must be"),
        ({"zookeeper_ssl_crl_enable": "true"}, "set barnabas.zookeeper.ssl.crl.location, too"),
        (
            {"barnabas_zookeeper_ssl_crl_location": "/none"},
            "barnabas.zookeeper.ssl.crl.location=/none: No such file",
        ),
        (
            {"zookeeper_sasl_clientconfig": "Mine"},
            "clientconfig=Mine: set java.security.auth.login.config, too",
        ),
        ({"java_security_auth_login_config": "/none"}, "login.config=/none: cannot be read"),
        ({"zookeeper_ssl_enabled_protocols": "SSLv3"}, "enabled.protocols=SSLv3"),
        ({"zookeeper_ssl_cipher_suites": "NONE_SUCH"}, "cipher.suites=NONE_SUCH"),
    ],
)
def test_what_cannot_be_used_is_refused(given: dict[str, str], said: str) -> None:
    """Each refusal names the option and its value."""
    with pytest.raises(ConfigError, match=said):
        settings_of(options(zookeeper_ssl_client_enable="true", **given))


KEY_STORES = {
    "pem": lambda issued, path: issued.write_pem(path),
    "encrypted pem": lambda issued, path: issued.write_pem(path, "secret"),
    "pkcs12": lambda issued, path: issued.write_pkcs12(path, "secret"),
    "jks": lambda issued, path: issued.write_jks(path, "secret"),
}


@pytest.mark.parametrize("kind", KEY_STORES)
def test_stores_of_every_kind(tmp_path: Path, kind: str) -> None:
    """One password opens the store and the key in it, as in Kafka; the content decides."""
    authority = Authority()
    own = KEY_STORES[kind](authority.issue("broker"), tmp_path / "own")
    trusted = tmp_path / "trusted"
    given = {"zookeeper_ssl_client_enable": "true", "zookeeper_ssl_keystore_location": str(own)}
    given["zookeeper_ssl_truststore_location"] = str(trusted)
    if kind.endswith("pem"):
        authority.write(trusted)
    else:
        write = authority.write_jks if kind == "jks" else authority.write_pkcs12
        write(trusted, "trust")
        given["zookeeper_ssl_truststore_password"] = "trust"
    if kind != "pem":
        with pytest.raises(ConfigError, match=r"set zookeeper\.ssl\.keystore\.password"):
            settings_of(options(**given))
        with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.keystore\.location=") as wrong:
            settings_of(options(zookeeper_ssl_keystore_password="wr0ng", **given))
        assert "wr0ng" not in str(wrong.value)
        given["zookeeper_ssl_keystore_password"] = "secret"
    context = settings_of(options(**given)).tls
    assert context is not None
    assert context.check_hostname
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "test CA"),),)]
    given["zookeeper_ssl_endpoint_identification_algorithm"] = ""
    unnamed = settings_of(options(**given)).tls
    assert unnamed is not None
    assert not unnamed.check_hostname


def test_cipher_suites_by_either_name() -> None:
    given = {"zookeeper_ssl_client_enable": "true"}
    found = []
    for name in ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"):
        context = settings_of(options(zookeeper_ssl_cipher_suites=name, **given)).tls
        assert context is not None
        assert context.maximum_version is ssl.TLSVersion.TLSv1_2, "no suite of TLS 1.3 is listed"
        found.append([each["name"] for each in context.get_ciphers()])
    assert found[0] == found[1]
    assert "ECDHE-RSA-AES256-GCM-SHA384" in found[0]
    assert "ECDHE-RSA-AES128-GCM-SHA256" not in found[0]


LOGINS = """
KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a"; };
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="broker" password="hush";
};
Other { org.apache.zookeeper.server.auth.DigestLoginModule required username="o" password="p"; };
Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k"; };
Nameless { org.apache.zookeeper.server.auth.DigestLoginModule required password="hush"; };
"""


def test_the_login_is_a_section_of_the_jaas_file(tmp_path: Path) -> None:
    """`Client` unless another is named; a file for the listeners alone has none."""
    file = tmp_path / "jaas.conf"
    file.write_text(LOGINS)

    def login(**more: str) -> object:
        return settings_of(options(java_security_auth_login_config=str(file), **more)).login

    assert login() == SaslLogin("broker", "hush")
    assert "hush" not in repr(settings_of(options(java_security_auth_login_config=str(file))))
    assert login(zookeeper_sasl_clientconfig="Other") == SaslLogin("o", "p")
    assert login(zookeeper_sasl_client="false") is None
    assert login(zookeeper_set_acl="true") == SaslLogin("broker", "hush")
    with pytest.raises(ConfigError, match=r"clientconfig=Gone: .*jaas\.conf has no such section"):
        login(zookeeper_sasl_clientconfig="Gone")
    with pytest.raises(ConfigError, match="section Kerberos: Kerberos is not supported"):
        login(zookeeper_sasl_clientconfig="Kerberos")
    with pytest.raises(
        ConfigError, match="section Nameless: it must be a login module"
    ) as nameless:
        login(zookeeper_sasl_clientconfig="Nameless")
    assert "hush" not in str(nameless.value)
    file.write_text(LOGINS.replace("Client", "Clients"))
    assert login() is None
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true requires credentials"):
        login(zookeeper_set_acl="true")


def test_a_certificate_that_is_not_used_is_no_login(tmp_path: Path) -> None:
    own = Authority().issue("broker").write_pem(tmp_path / "own.pem")
    given = {"zookeeper_set_acl": "true", "zookeeper_ssl_keystore_location": str(own)}
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true requires credentials"):
        settings_of(options(**given))
    assert settings_of(options(zookeeper_ssl_client_enable="true", **given)).tls is not None


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

"""TLS against a scripted broker with certificates of its own, and what options make of it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests import certificates
from tests.network.scripted_broker import ScriptedBroker
from tests.unit.broker.encrypted import EncryptedServing

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.client.errors import AuthenticationFailedError, NetworkError
from barnabas.client.security import socket_options_of, tls_of
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.errors import ConfigError, RemoteProtocolError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse


class Authority:
    """A certificate authority, a broker's context and a client's files, in a directory."""

    def __init__(self, directory: Path, host: str = "127.0.0.1") -> None:
        self.authority = trustme.CA()
        self.cafile = str(directory / "ca.pem")
        self.authority.cert_pem.write_to_path(self.cafile)
        self.broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(host).configure_cert(self.broker)
        mine = self.authority.issue_cert("client@example.org")
        self.certfile, self.keyfile = str(directory / "mine.pem"), str(directory / "mine.key")
        mine.private_key_pem.write_to_path(self.keyfile)
        Path(self.certfile).write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))

    def demand_certificates(self) -> None:
        self.broker.verify_mode = ssl.CERT_REQUIRED
        self.authority.configure_trust(self.broker)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def options_of(**given: Any) -> CommonOptions:
    return parse_client_options(CommonOptions, {"security_protocol": "SSL", **given})


def reach(server: ssl.SSLContext | None, loop: Any = asyncio.new_event_loop, **given: Any) -> Any:
    """Ask a broker behind TLS for its cluster id."""

    async def conversation() -> Any:
        script = {MetadataRequest: lambda request, version: MetadataResponse(cluster_id="inside")}
        async with ScriptedBroker(script, tls=server) as broker:
            options = options_of(bootstrap_servers=str(broker.address), **given)
            async with ClusterClient.from_options(options) as client:
                return (await client.refresh()).cluster_id

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(conversation())


def new_uvloop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_uvloop])
def test_a_broker_that_the_authority_vouches_for_is_trusted(
    authority: Authority, loop: Any
) -> None:
    assert reach(authority.broker, loop, ssl_cafile=authority.cafile) == "inside"


def test_the_authority_can_be_given_as_text(authority: Authority) -> None:
    text = Path(authority.cafile).read_text()
    assert reach(authority.broker, **{"ssl.truststore.certificates": text}) == "inside"


def test_a_stranger_is_refused(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    with pytest.raises(AuthenticationFailedError, match="its certificate is rejected"):
        reach(authority.broker, ssl_cafile=other.cafile)


def test_the_host_must_be_the_one_in_the_certificate(tmp_path: Path) -> None:
    elsewhere = Authority(tmp_path, host="elsewhere.example.org")
    with pytest.raises(AuthenticationFailedError, match=r"certificate is rejected.*127\.0\.0\.1"):
        reach(elsewhere.broker, ssl_cafile=elsewhere.cafile)
    for how in ({"ssl_check_hostname": False}, {"ssl.endpoint.identification.algorithm": ""}):
        assert reach(elsewhere.broker, ssl_cafile=elsewhere.cafile, **how) == "inside"


def test_a_client_shows_its_own_certificate(authority: Authority) -> None:
    authority.demand_certificates()
    as_files = {"ssl_certfile": authority.certfile, "ssl_keyfile": authority.keyfile}
    as_texts = {
        "ssl.keystore.certificate.chain": Path(authority.certfile).read_text(),
        "ssl.keystore.key": Path(authority.keyfile).read_text(),
    }
    for own in (as_files, as_texts):
        assert reach(authority.broker, ssl_cafile=authority.cafile, **own) == "inside"


@pytest.mark.parametrize("kind", ["pkcs12", "jks"])
def test_a_client_has_stores_as_java_has_them(tmp_path: Path, kind: str) -> None:
    """By Kafka's names; what a file is, it says itself."""
    root = certificates.Authority()
    broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    broker.load_cert_chain(root.issue("broker").write_pem(tmp_path / "broker.pem"))
    broker.load_verify_locations(cadata=root.pem)
    broker.verify_mode = ssl.CERT_REQUIRED
    own = getattr(root.issue("client"), f"write_{kind}")(tmp_path / "own", "secret")
    trusted = getattr(root, f"write_{kind}")(tmp_path / "trusted", "other")
    options = {
        "ssl.keystore.location": str(own),
        "ssl.keystore.password": "secret",
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": "other",
    }
    assert reach(broker, **options) == "inside"
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location=.*password"):
        tls_of(options_of(**options | {"ssl.keystore.password": "wrong"}))
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.type=BCFKS"):
        tls_of(options_of(**options, **{"ssl.keystore.type": "BCFKS"}))


def test_an_encrypted_key_of_a_client(tmp_path: Path, authority: Authority) -> None:
    own = certificates.Authority().issue("client").write_pem(tmp_path / "own", "secret")
    options = {"ssl_cafile": authority.cafile, "ssl.keystore.location": str(own)}
    context = tls_of(options_of(**options, **{"ssl.key.password": "secret"}))
    assert context is not None
    with pytest.raises(ConfigError, match=r"encrypted; set ssl\.key\.password"):
        tls_of(options_of(**options))


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_uvloop])
def test_an_alert_after_the_handshake_is_a_rejection(tmp_path: Path, loop: Any) -> None:
    """With TLS 1.3 a broker judges the client's certificate when the client is done."""
    with EncryptedServing(tmp_path, {"ssl.client.auth": "required"}) as serving:
        address = Address(*serving.address)

        async def connect() -> None:
            await Connection.open(address, client_id="x", tls=serving.client_context())

        with (
            asyncio.Runner(loop_factory=loop) as runner,
            pytest.raises(AuthenticationFailedError, match="the alert 'certificate required'"),
        ):
            runner.run(connect())
        serving.expect_line("the client has no certificate")


def test_a_client_without_the_certificate_that_is_demanded_hears_so(authority: Authority) -> None:
    authority.demand_certificates()
    with pytest.raises(NetworkError, match=r"certificate required|closed by the broker|reset"):
        reach(authority.broker, ssl_cafile=authority.cafile)


def test_plain_and_encrypted_do_not_understand_each_other_and_say_so(authority: Authority) -> None:
    with pytest.raises(NetworkError, match="it may not use TLS"):
        reach(None, ssl_cafile=authority.cafile)
    with pytest.raises((NetworkError, RemoteProtocolError), match="it may expect TLS"):
        reach(authority.broker, security_protocol="PLAINTEXT")


def test_a_context_is_used_as_it_is(authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.cafile)
    assert tls_of(options_of(ssl_context=context)) is context
    assert reach(authority.broker, ssl_context=context) == "inside"
    with pytest.raises(ConfigError, match=r"must be an ssl\.SSLContext"):
        tls_of(options_of(ssl_context="yes"))


def test_versions_of_tls_are_those_of_the_option(authority: Authority) -> None:
    both = tls_of(options_of(ssl_cafile=authority.cafile))
    one = tls_of(options_of(ssl_cafile=authority.cafile, ssl_enabled_protocols="TLSv1.2"))
    assert both is not None
    assert one is not None
    assert (both.minimum_version, both.maximum_version) == (
        ssl.TLSVersion.TLSv1_2,
        ssl.TLSVersion.TLSv1_3,
    )
    assert one.maximum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ssl_cafile": "/does/not/exist"}, "ssl.cafile=/does/not/exist: No such file"),
        ({"ssl_certfile": "/does/not/exist"}, "ssl.certfile=/does/not/exist: No such file"),
        ({"ssl_ciphers": "NONSENSE"}, "ssl.ciphers=NONSENSE: OpenSSL does not support it"),
        ({"ssl_keyfile": "/only/a/key"}, "set together"),
        ({"ssl.truststore.certificates": "nothing"}, "ssl.truststore.certificates: not PEM"),
    ],
)
def test_what_cannot_be_loaded_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tls_of(options_of(**given))


def test_without_tls_there_is_no_context() -> None:
    assert tls_of(options_of(security_protocol="PLAINTEXT")) is None


def test_socket_options_are_those_that_were_asked_for() -> None:
    options = options_of(
        send_buffer_bytes=65536,
        receive_buffer_bytes=-1,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
    assert socket_options_of(options) == [
        (socket.SOL_SOCKET, socket.SO_SNDBUF, 65536),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    with pytest.raises(ConfigError, match="level, option, value"):
        socket_options_of(options_of(socket_options=[(1, 2)]))

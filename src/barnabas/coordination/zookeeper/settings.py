"""How to reach a ZooKeeper ensemble: servers, chroot, timeouts, credentials, TLS, ACLs.

Validated here once, with errors that name the option; users of the settings need not check again.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import check_path
from barnabas.model.errors import ConfigError, InvalidValueError

DEFAULT_PORT = 2181
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:\s]+)(?::([0-9]{1,5}))?")
_TLS_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Everything that a session needs to know."""

    servers: tuple[str, ...]
    """`host:port`, each complete."""
    chroot: str = ""
    """Empty, or the path below which all nodes are."""
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    in_flight_max: int = 10
    set_acl: bool = False
    credentials: str | None = None
    """`user:password` of the digest scheme."""
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return ",".join(self.servers) + self.chroot


def settings_of(options: BrokerOptions) -> ZooKeeperSettings:
    """Return the settings from a broker's options; zookeeper.connect must be set."""
    assert options.zookeeper_connect is not None
    servers, chroot = parse_connect(options.zookeeper_connect)
    credentials = options.barnabas_zookeeper_credentials
    if credentials is not None and ":" not in credentials.value:
        raise ConfigError("barnabas.zookeeper.credentials=[hidden]: must be user:password")
    has_certificate = options.zookeeper_ssl_keystore_location is not None
    if options.zookeeper_set_acl and credentials is None and not has_certificate:
        raise ConfigError(
            "zookeeper.set.acl=true requires credentials: "
            "set barnabas.zookeeper.credentials or zookeeper.ssl.keystore.location"
        )
    timeout_ms = options.zookeeper_session_timeout_ms
    return ZooKeeperSettings(
        servers,
        chroot,
        timeout_ms,
        options.zookeeper_connection_timeout_ms or timeout_ms,
        options.zookeeper_max_in_flight_requests,
        options.zookeeper_set_acl,
        None if credentials is None else credentials.value,
        _tls(options) if options.zookeeper_ssl_client_enable else None,
    )


def parse_connect(text: str) -> tuple[tuple[str, ...], str]:
    """Split `host:port,host:port/chroot` into the servers, each with its port, and the chroot."""
    listed, slash, below = text.partition("/")
    servers = []
    for part in listed.split(","):
        found = _SERVER.fullmatch(part.strip())
        if found is None or int(found[2] or DEFAULT_PORT) not in range(1, 65536):
            raise ConfigError(
                f"zookeeper.connect={text}: {part.strip()!r} is not host:port; "
                "expected host:port[,host:port]…[/chroot]"
            )
        servers.append(f"{found[1]}:{found[2] or DEFAULT_PORT}")
    chroot = (slash + below).rstrip("/")
    if chroot:
        try:
            check_path(chroot)
        except InvalidValueError as failure:
            raise ConfigError(f"zookeeper.connect={text}: the chroot {failure}") from failure
    return tuple(servers), chroot


def _tls(options: BrokerOptions) -> ssl.SSLContext:
    """Build the client's TLS context from PEM files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(options.zookeeper_ssl_endpoint_identification_algorithm)
    versions = _versions(
        options.zookeeper_ssl_enabled_protocols or (options.zookeeper_ssl_protocol, "TLSv1.3")
    )
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    try:
        if options.zookeeper_ssl_cipher_suites:
            context.set_ciphers(":".join(options.zookeeper_ssl_cipher_suites))
    except ssl.SSLError as failure:
        suites = ",".join(options.zookeeper_ssl_cipher_suites or ())
        raise ConfigError(
            f"zookeeper.ssl.cipher.suites={suites}: none of them is known to OpenSSL"
        ) from failure
    _check_pem("truststore", options.zookeeper_ssl_truststore_type)
    _check_pem("keystore", options.zookeeper_ssl_keystore_type)
    trusted = options.zookeeper_ssl_truststore_location
    own = options.zookeeper_ssl_keystore_location
    secret = options.zookeeper_ssl_keystore_password
    name = "zookeeper.ssl.truststore.location"
    try:
        if trusted is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(trusted)
        name = "zookeeper.ssl.keystore.location"
        if own is not None:
            context.load_cert_chain(own, password=None if secret is None else secret.value)
    except (OSError, ssl.SSLError) as failure:
        value = trusted if name.endswith("truststore.location") else own
        raise ConfigError(f"{name}={value}: not a usable PEM file: {failure}") from failure
    return context


def _versions(names: Sequence[str]) -> list[ssl.TLSVersion]:
    unknown = [name for name in names if name not in _TLS_VERSIONS]
    if unknown:
        raise ConfigError(
            f"zookeeper.ssl.enabled.protocols={','.join(names)}: {unknown[0]!r} is not one of "
            f"{', '.join(_TLS_VERSIONS)}"
        )
    return [_TLS_VERSIONS[name] for name in names]


def _check_pem(store: str, given: str | None) -> None:
    if given is not None and given.upper() != "PEM":
        raise ConfigError(
            f"zookeeper.ssl.{store}.type={given}: only PEM files are supported; convert it with "
            "openssl or keytool"
        )

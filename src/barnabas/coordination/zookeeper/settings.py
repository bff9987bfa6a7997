"""How to reach a ZooKeeper ensemble: servers, chroot, timeouts, logins, TLS, ACLs.

Validated here once, with errors that name the option; users of the settings need not check again.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.config.broker import BrokerOptions
from barnabas.config.jaas import jaas_file
from barnabas.coordination.contract import check_path
from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.tls.context import client_context
from barnabas.tls.settings import TlsSettings, check_store_type
from barnabas.tls.stores import KeyStore, TrustStore

DEFAULT_PORT = 2181
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:\s]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """User name and password for SASL (DIGEST-MD5)."""

    user: str
    password: str = field(repr=False)


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
    credentials: str | None = field(default=None, repr=False)
    """`user:password` of the digest scheme."""
    tls: ssl.SSLContext | None = None
    login: SaslLogin | None = None

    def __str__(self) -> str:
        return ",".join(self.servers) + self.chroot


def settings_of(options: BrokerOptions) -> ZooKeeperSettings:
    """Return the settings from a broker's options; zookeeper.connect must be set."""
    assert options.zookeeper_connect is not None
    servers, chroot = parse_connect(options.zookeeper_connect)
    credentials = options.barnabas_zookeeper_credentials
    if credentials is not None and ":" not in credentials.value:
        raise ConfigError("barnabas.zookeeper.credentials=[hidden]: must be user:password")
    login = _login(options)
    uses_tls = options.zookeeper_ssl_client_enable
    has_certificate = uses_tls and options.zookeeper_ssl_keystore_location is not None
    if options.zookeeper_set_acl and not (login or credentials or has_certificate):
        raise ConfigError(
            "zookeeper.set.acl=true requires credentials: set "
            "java.security.auth.login.config to a file with a section "
            f"{options.zookeeper_sasl_clientconfig}, or barnabas.zookeeper.credentials, or "
            "zookeeper.ssl.client.enable=true and zookeeper.ssl.keystore.location"
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
        _tls(options) if uses_tls else None,
        login,
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


def _login(options: BrokerOptions) -> SaslLogin | None:
    """Return the login of the JAAS file's section for ZooKeeper; None if there is none."""
    path = options.java_security_auth_login_config
    section = options.zookeeper_sasl_clientconfig
    named = "zookeeper.sasl.clientconfig"
    if not options.zookeeper_sasl_client:
        return None
    if path is None:
        if named in options.given:
            raise ConfigError(f"{named}={section}: set java.security.auth.login.config, too")
        return None
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise ConfigError(
            f"java.security.auth.login.config={path}: cannot be read: {failure}"
        ) from failure
    entries = jaas_file(text, f"java.security.auth.login.config={path}").get(section)
    if entries is None:
        if named in options.given:
            raise ConfigError(
                f"{named}={section}: java.security.auth.login.config={path} has no such section"
            )
        return None  # the file is for the listeners alone
    entry = entries[0]
    user, password = entry.options.get("username"), entry.options.get("password")
    if not user or not password:
        kerberos = entry.module.endswith("Krb5LoginModule")
        raise ConfigError(
            f"java.security.auth.login.config={path}: section {section}: "
            + ("Kerberos is not supported for ZooKeeper; use" if kerberos else "it must be")
            + " a login module with username and password, such as "
            "org.apache.zookeeper.server.auth.DigestLoginModule; zookeeper.sasl.client=false "
            "ignores the section"
        )
    return SaslLogin(user, password)


def _tls(options: BrokerOptions) -> ssl.SSLContext:
    """Return the client's TLS context."""
    for name, kind in (
        ("zookeeper.ssl.keystore.type", options.zookeeper_ssl_keystore_type),
        ("zookeeper.ssl.truststore.type", options.zookeeper_ssl_truststore_type),
    ):
        if kind is not None:
            check_store_type(name, kind)
    if options.zookeeper_ssl_crl_enable and options.barnabas_zookeeper_ssl_crl_location is None:
        raise ConfigError(
            "zookeeper.ssl.crl.enable=true: set barnabas.zookeeper.ssl.crl.location, too; "
            "revocation lists are not fetched"
        )
    password = options.zookeeper_ssl_keystore_password
    protocols = options.zookeeper_ssl_enabled_protocols
    settings = TlsSettings(
        KeyStore(
            options.zookeeper_ssl_keystore_location,
            password,
            password,
            option="zookeeper.ssl.keystore.location",
            password_option="zookeeper.ssl.keystore.password",
            key_password_option="zookeeper.ssl.keystore.password",
        ),
        TrustStore(
            options.zookeeper_ssl_truststore_location,
            options.zookeeper_ssl_truststore_password,
            option="zookeeper.ssl.truststore.location",
            password_option="zookeeper.ssl.truststore.password",
        ),
        protocols=protocols or _protocols(options.zookeeper_ssl_protocol),
        protocols_option=(
            "zookeeper.ssl.enabled.protocols" if protocols else "zookeeper.ssl.protocol"
        ),
        cipher_suites=options.zookeeper_ssl_cipher_suites or (),
        ciphers_option="zookeeper.ssl.cipher.suites",
        check_hostname=bool(options.zookeeper_ssl_endpoint_identification_algorithm),
        crl_location=options.barnabas_zookeeper_ssl_crl_location,
        crl_option="barnabas.zookeeper.ssl.crl.location",
    )
    own = settings.key_store.read() if settings.key_store.is_set else None
    return client_context(settings, own)


def _protocols(preferred: str) -> tuple[str, ...]:
    """Return the versions that one preferred version stands for; Java calls all of them TLS."""
    return ("TLSv1.2", "TLSv1.3") if preferred == "TLS" else (preferred, "TLSv1.3")

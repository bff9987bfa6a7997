"""TLS of one listener: the context of new connections, their principals, and how it is renewed.

The context is replaced when its options or files change; open connections keep the one that they
began with. What cannot be used is logged once and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.broker.loop import offload
from barnabas.broker.network.handshakes import Handshakes
from barnabas.broker.network.tls_transport import TlsTransport
from barnabas.config.broker import BrokerOptions, listener_prefix
from barnabas.config.listeners import Endpoint
from barnabas.model.errors import ConfigError
from barnabas.security.audit import AuditLog
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.tls.certificate import MalformedCertificate, read_certificate
from barnabas.tls.channel import TlsChannel, TlsError
from barnabas.tls.distinguished_name import distinguished_name
from barnabas.tls.identity import TlsIdentity, check_successor, load
from barnabas.tls.principal_rules import PrincipalRules
from barnabas.tls.settings import TlsSettings, check_store_type
from barnabas.tls.stores import KeyStore, TrustStore

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection
    from barnabas.broker.network.session import Session

logger = logging.getLogger("barnabas.network")

RECEIVE_BUFFER_BYTES = 256 * 1024
MECHANISM = "TLS"
"""How clients log in by certificates, in the audit log."""
HANDSHAKE_S_MAX = 10.0
"""How long a client may take for its handshake."""


def tls_settings(broker: BrokerOptions, endpoint: Endpoint) -> TlsSettings:
    """Return the settings of a listener from the options of its broker."""
    options = broker.for_listener(endpoint.name)
    check_store_type("ssl.keystore.type", options.ssl_keystore_type)
    check_store_type("ssl.truststore.type", options.ssl_truststore_type)
    client_auth = options.ssl_client_auth
    if endpoint.protocol.uses_sasl:
        # There, certificates do not name the client, so only the listener's own option counts.
        client_auth = broker.given.get(f"{listener_prefix(endpoint.name)}ssl.client.auth", "none")
    return TlsSettings(
        KeyStore(
            options.ssl_keystore_location,
            options.ssl_keystore_password,
            options.ssl_key_password,
            options.ssl_keystore_certificate_chain,
            options.ssl_keystore_key,
        ),
        TrustStore(
            options.ssl_truststore_location,
            options.ssl_truststore_password,
            options.ssl_truststore_certificates,
        ),
        protocols=options.ssl_enabled_protocols,
        cipher_suites=options.ssl_cipher_suites,
        client_auth=client_auth,
        crl_location=options.barnabas_ssl_crl_location,
        crl_option="barnabas.ssl.crl.location",
        check_hostname=options.ssl_endpoint_identification_algorithm == "https",
    )


class ListenerTls:
    """What the TLS connections of one listener have in common."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: BrokerOptions,
        executor: Executor | None,
        audit: AuditLog,
        *,
        handshake_s_max: float = HANDSHAKE_S_MAX,
        option: str | None = None,
    ) -> None:
        """Load key and trust; raise ConfigError, which names an option, if they are not usable."""
        self._endpoint = endpoint
        self._option = option or f"listeners={endpoint}"
        self._executor = executor
        self._audit = audit
        self.handshake_s_max = handshake_s_max
        self.handshakes = Handshakes()
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        """Shared by all connections: nothing happens between filling it and reading from it."""
        rules = options.for_listener(endpoint.name).ssl_principal_mapping_rules
        self._rules = PrincipalRules(rules)
        self._identity = self._load(self._settings(options), options)
        self._renewing = asyncio.Lock()
        self._tried = (self._identity.settings, self._identity.fingerprint)

    def encrypt(self, connection: Connection) -> TlsTransport:
        """Return the protocol that stands between TCP and a new connection."""
        return TlsTransport(connection, self)

    @property
    def context(self) -> ssl.SSLContext:
        """Return the context of new connections."""
        return self._identity.server

    @property
    def client_context(self) -> ssl.SSLContext | None:
        """Return the context of connections to this listener of other brokers."""
        return self._identity.client

    def principal_of(self, channel: TlsChannel) -> Principal:
        """Return who a client is by its certificate; raise TlsError if it may not connect."""
        der = channel.peer_certificate
        return ANONYMOUS if der is None else self.named(der, is_resumed=channel.is_resumed)

    def named(self, der: bytes, *, is_resumed: bool = False) -> Principal:
        """Return whom a certificate (DER) names; raise TlsError if it may not connect."""
        try:
            certificate = read_certificate(der)
            subject = distinguished_name(certificate.subject)
        except MalformedCertificate as failure:
            raise TlsError(f"the client's certificate is unreadable: {failure}") from failure
        if is_resumed and not certificate.is_valid_at(datetime.now(UTC)):
            raise TlsError("the client's certificate has expired since its session began")
        if self._endpoint.protocol.uses_sasl:
            return ANONYMOUS
        name = self._rules.name_of(subject)
        if name is None:
            raise TlsError(f"no rule of ssl.principal.mapping.rules matches {subject[:256]!r}")
        return Principal("User", name)

    def record_login(self, session: Session) -> None:
        """Record in the audit log who has connected, if the certificate says so."""
        if session.principal != ANONYMOUS:
            self._audit.login(
                str(session.principal),
                session.client_host,
                session.listener,
                MECHANISM,
                again=False,
            )

    def record_failure(self, session: Session, reason: str) -> None:
        """Record in the audit log that a client was not let in."""
        self._audit.failed_login(
            session.client_host, session.listener, MECHANISM, reason, again=False
        )

    async def check(self, options: BrokerOptions) -> None:
        """Raise ConfigError if changed options could not be used."""
        settings = self._settings(options)
        fingerprint = await offload(self._executor, settings.fingerprint)
        if (settings, fingerprint) != (self._identity.settings, self._identity.fingerprint):
            await offload(self._executor, self._successor, settings, options)

    async def renew(self, options: BrokerOptions) -> None:
        """Use options and files that have changed since the last call, if they are usable."""
        async with self._renewing:
            await self._renew(options)

    async def _renew(self, options: BrokerOptions) -> None:
        try:
            settings = self._settings(options)
            fingerprint = await offload(self._executor, settings.fingerprint)
            if (settings, fingerprint) == self._tried:
                return
            self._tried = (settings, fingerprint)
            identity = await offload(self._executor, self._successor, settings, options)
        except ConfigError as failure:
            logger.error(
                "listener %s keeps its certificate and trusted certificates: %s",
                self._endpoint.name,
                failure,
            )
            return
        self._identity = identity
        logger.info(
            "listener %s uses its renewed certificate and trusted certificates", self._endpoint.name
        )

    def _settings(self, options: BrokerOptions) -> TlsSettings:
        return tls_settings(options, self._endpoint)

    def _load(self, settings: TlsSettings, options: BrokerOptions) -> TlsIdentity:
        listeners = options.endpoints
        between_brokers = self._endpoint.name in (listeners.inter_broker, listeners.control_plane)
        try:
            return load(settings, between_brokers=between_brokers)
        except ConfigError as failure:
            raise ConfigError(f"{self._option}: {failure}") from failure

    def _successor(self, settings: TlsSettings, options: BrokerOptions) -> TlsIdentity:
        own_options = options.for_listener(self._endpoint.name)
        identity = self._load(settings, options)
        check_successor(
            self._identity,
            identity,
            allow_dn_changes=own_options.ssl_allow_dn_changes,
            allow_san_changes=own_options.ssl_allow_san_changes,
        )
        return identity

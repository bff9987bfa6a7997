"""From a client's options to what its connections need: TLS, credentials, socket options."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.client.authentication import Authentication, Mechanism
from barnabas.client.opening import Login
from barnabas.client.sasl.oauthbearer import OAuthBearer
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.security import SecurityOptions
from barnabas.model.errors import ConfigError
from barnabas.tls.context import client_context
from barnabas.tls.settings import TlsSettings, check_store_type
from barnabas.tls.stores import KeyStore, TrustStore


def tls_of(options: SecurityOptions) -> ssl.SSLContext | None:
    """Return the context for encrypted connections; None for plain ones."""
    if not options.uses_tls:
        return None
    given = options.ssl_context
    if given is not None:
        if not isinstance(given, ssl.SSLContext):
            raise ConfigError(f"ssl.context={given!r}: must be an ssl.SSLContext")
        return given
    settings = _settings(options)
    return client_context(
        settings, settings.key_store.read() if settings.key_store.is_set else None
    )


def _settings(options: SecurityOptions) -> TlsSettings:
    check_store_type("ssl.keystore.type", options.ssl_keystore_type)
    check_store_type("ssl.truststore.type", options.ssl_truststore_type)
    separate = options.ssl_certfile is not None
    return TlsSettings(
        KeyStore(
            options.ssl_certfile if separate else options.ssl_keystore_location,
            options.ssl_keystore_password,
            options.ssl_password,
            options.ssl_keystore_certificate_chain,
            options.ssl_keystore_key,
            options.ssl_keyfile,
            option="ssl.certfile" if separate else "ssl.keystore.location",
        ),
        TrustStore(
            options.ssl_cafile,
            options.ssl_truststore_password,
            options.ssl_truststore_certificates,
            option="ssl.cafile",
        ),
        protocols=options.ssl_enabled_protocols,
        cipher_suites=tuple(filter(None, re.split("[,:]", options.ssl_ciphers or ""))),
        ciphers_option="ssl.ciphers",
        check_hostname=(
            options.ssl_check_hostname and options.ssl_endpoint_identification_algorithm == "https"
        ),
        crl_location=options.ssl_crlfile,
        crl_option="ssl.crlfile",
    )


def login_of(options: SecurityOptions, random: Callable[[], float]) -> Login | None:
    """Return the authenticator of connections; None without SASL."""
    if not options.uses_sasl:
        return None
    converse = _conversations(options)
    converse()  # credentials that cannot be sent to any broker fail now
    return Authentication(options.sasl_mechanism, converse, random)


def _conversations(options: SecurityOptions) -> Callable[[], Mechanism]:
    """Return a function that begins a conversation of the configured mechanism."""
    mechanism = options.sasl_mechanism
    if mechanism == "OAUTHBEARER":
        return partial(OAuthBearer, options.sasl_oauth_token_provider)
    user, secret = options.sasl_plain_username, options.sasl_plain_password
    assert user is not None  # checked when the options were parsed
    assert secret is not None
    if mechanism == "PLAIN":
        return partial(Plain, user, secret.value)
    return partial(Scram, mechanism, user, secret.value)


def socket_options_of(options: CommonOptions) -> list[tuple[int, int, Any]]:
    """Return the configured socket options; the system decides about the others."""
    chosen: list[tuple[int, int, Any]] = []
    for name, size in (
        (socket.SO_SNDBUF, options.send_buffer_bytes),
        (socket.SO_RCVBUF, options.receive_buffer_bytes),
    ):
        if size is not None and size >= 0:
            chosen.append((socket.SOL_SOCKET, name, size))
    for entry in options.socket_options or ():
        if len(entry) != 3:
            raise ConfigError(f"socket.options={entry!r}: must be (level, option, value)")
        chosen.append(entry)
    return chosen

"""From a client's options to what its connections need: TLS, credentials, socket options."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from barnabas.client.authentication import Authentication, Converse
from barnabas.client.opening import Login
from barnabas.client.sasl.conversations import with_password, with_ticket, with_token
from barnabas.client.sasl.oauthbearer import OAuthBearer
from barnabas.client.tls_context import tls_context
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.security import SecurityOptions
from barnabas.model.errors import ConfigError

JAAS = "sasl.jaas.config"


def tls_of(options: SecurityOptions) -> ssl.SSLContext | None:
    """Return the context for encrypted connections; None for plain ones."""
    if not options.uses_tls:
        return None
    given = options.ssl_context
    if given is not None:
        if not isinstance(given, ssl.SSLContext):
            raise ConfigError(f"ssl.context={given!r}: must be an ssl.SSLContext")
        return given
    return tls_context(options)


def login_of(options: SecurityOptions, random: Callable[[], float]) -> Login | None:
    """Return the authenticator of connections; None without SASL."""
    if not options.uses_sasl:
        return None
    converse = _conversations(options, random)
    converse("")  # credentials that cannot be sent to any broker fail now
    return Authentication(options.sasl_mechanism, converse, random)


def _conversations(options: SecurityOptions, random: Callable[[], float]) -> Converse:
    """Return a function that begins a conversation of the configured mechanism."""
    mechanism, entry = options.sasl_mechanism, options.login_entry
    jaas = entry.options if entry is not None else {}
    if mechanism == "OAUTHBEARER":
        provider = options.sasl_oauth_token_provider
        if provider is not None:
            return lambda host: OAuthBearer(provider)
        return with_token(options, jaas, JAAS, random)
    if mechanism == "GSSAPI":
        return with_ticket(
            options,
            jaas,
            JAAS,
            domain=options.sasl_kerberos_domain_name,
            name=options.sasl_kerberos_name,
        )
    user, secret = options.sasl_plain_username, options.sasl_plain_password
    assert user is not None  # checked when the options were parsed
    assert secret is not None
    return with_password(mechanism, user, secret.value, jaas)


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

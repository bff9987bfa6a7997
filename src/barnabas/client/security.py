"""From a client's options to what its connections need: TLS, credentials, socket options."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
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
from barnabas.config.option import Password
from barnabas.model.errors import ConfigError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_of(options: SecurityOptions) -> ssl.SSLContext | None:
    """Return the context for encrypted connections; None for plain ones."""
    if not options.uses_tls:
        return None
    given = options.ssl_context
    if given is not None:
        if not isinstance(given, ssl.SSLContext):
            raise ConfigError(f"ssl.context={given!r}: must be an ssl.SSLContext")
        return given
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = (
        options.ssl_check_hostname and options.ssl_endpoint_identification_algorithm == "https"
    )
    versions = [_VERSIONS[name] for name in options.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    _load_trust(context, options)
    _load_own(context, options)
    if options.ssl_ciphers:
        try:
            context.set_ciphers(options.ssl_ciphers.replace(",", ":"))
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.ciphers={options.ssl_ciphers}: OpenSSL supports none of them"
            ) from None
    return context


def _load_trust(context: ssl.SSLContext, options: SecurityOptions) -> None:
    """Load the trusted certificates: those that are given, else the system's."""
    texts = options.ssl_truststore_certificates
    if texts is not None:
        try:
            context.load_verify_locations(cadata=texts.value)
        except (ssl.SSLError, ValueError) as failure:
            raise ConfigError(f"ssl.truststore.certificates: not PEM ({failure})") from failure
    if options.ssl_cafile is not None:
        _load_file("ssl.cafile", options.ssl_cafile, context.load_verify_locations)
    elif texts is None:
        context.load_default_certs()
    if options.ssl_crlfile is not None:
        _load_file("ssl.crlfile", options.ssl_crlfile, context.load_verify_locations)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own(context: ssl.SSLContext, options: SecurityOptions) -> None:
    """Load the client's own certificate and key, if there are any."""
    secret = options.ssl_password.value if options.ssl_password is not None else None

    def load(path: str, key: str | None = None) -> None:
        # An empty password, so that OpenSSL does not prompt on the terminal.
        context.load_cert_chain(path, key, secret if secret is not None else "")

    chain, key = options.ssl_keystore_certificate_chain, options.ssl_keystore_key
    if options.ssl_certfile is not None:
        keyfile = options.ssl_keyfile
        _load_file("ssl.certfile", options.ssl_certfile, lambda path: load(path, keyfile))
    elif options.ssl_keystore_location is not None:
        _load_file("ssl.keystore.location", options.ssl_keystore_location, load)
    elif chain is not None and key is not None:
        _load_texts(chain, key, load)
    elif chain is not None or key is not None or options.ssl_keyfile is not None:
        raise ConfigError(
            "set the client's certificate and its key together: ssl.certfile and ssl.keyfile, or "
            "ssl.keystore.certificate.chain and ssl.keystore.key"
        )


def _load_texts(chain: Password, key: Password, load: Callable[[str], object]) -> None:
    """Load a certificate and its key through a file, as OpenSSL reads them from files only."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # only its owner may read it
        os.chmod(file.name, 0o600)
        file.write(f"{key.value.strip()}\n{chain.value.strip()}\n")
        file.flush()
        try:
            load(file.name)
        except (OSError, ValueError) as failure:
            raise ConfigError(
                f"ssl.keystore.key and ssl.keystore.certificate.chain: {failure}"
            ) from None


def _load_file(name: str, path: str, load: Callable[[str], object]) -> None:
    try:
        load(path)
    except (OSError, ValueError) as failure:  # an SSLError is an OSError
        if isinstance(failure, ssl.SSLError):
            why = f"not readable as PEM, or not matching ({failure.reason or failure})"
        else:
            why = getattr(failure, "strerror", None) or str(failure)
        raise ConfigError(f"{name}={path}: {why}") from failure


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

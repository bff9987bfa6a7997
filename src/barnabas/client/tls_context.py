"""The TLS context of a client, from its options."""

from __future__ import annotations

import re
import ssl

from barnabas.config.clients.security import SecurityOptions
from barnabas.tls.context import client_context
from barnabas.tls.settings import TlsSettings, check_store_type
from barnabas.tls.stores import KeyStore, TrustStore


def tls_context(options: SecurityOptions) -> ssl.SSLContext:
    """Return a context with the client's certificate, and the certificates that it trusts."""
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

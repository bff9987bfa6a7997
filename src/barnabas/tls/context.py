"""Contexts of OpenSSL for servers and clients, from settings.

A server offers no way to resume a session with a ticket: a resumed session skips the check of the
client's certificate, and connections that live for hours gain nothing by it. Renegotiation and
compression are off, too.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.model.errors import ConfigError
from barnabas.tls.cipher_suites import allow_old_versions, select
from barnabas.tls.settings import TlsSettings
from barnabas.tls.stores import KeyPair

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_DISABLED = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(settings: TlsSettings, own: KeyPair) -> ssl.SSLContext:
    """Return the context of a listener; raise ConfigError if the settings do not fit together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trust(context, settings, ssl.Purpose.CLIENT_AUTH)
    _configure(context, settings, own)
    return context


def client_context(settings: TlsSettings, own: KeyPair | None) -> ssl.SSLContext:
    """Return the context of a client; raise ConfigError if the settings do not fit together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_hostname
    _load_trust(context, settings, ssl.Purpose.SERVER_AUTH)
    _configure(context, settings, own)
    return context


def _configure(context: ssl.SSLContext, settings: TlsSettings, own: KeyPair | None) -> None:
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    _set_versions(context, settings.protocols, settings.protocols_option)
    if settings.cipher_suites:
        select(context, settings.cipher_suites, settings.ciphers_option)
    else:
        allow_old_versions(context)
    if own is not None:
        _load_own(context, settings, own)


def _set_versions(context: ssl.SSLContext, protocols: tuple[str, ...], option: str) -> None:
    unknown = [name for name in protocols if name not in VERSIONS]
    if unknown or not protocols:
        raise ConfigError(f"{option}={','.join(protocols)}: must be some of {', '.join(VERSIONS)}")
    chosen = [VERSIONS[name] for name in protocols]
    with warnings.catch_warnings():
        # Old versions are deprecated in Python; they are listed on purpose.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = min(chosen), max(chosen)
        for name, flag in _DISABLED.items():  # a gap between the lowest and the highest
            if min(chosen) < VERSIONS[name] < max(chosen) and name not in protocols:
                context.options |= flag


def _load_trust(context: ssl.SSLContext, settings: TlsSettings, purpose: ssl.Purpose) -> None:
    store = settings.trust_store
    if store.is_set:
        try:
            context.load_verify_locations(cadata=b"".join(store.read()))
        except (ssl.SSLError, ValueError) as failure:
            if isinstance(failure, ConfigError):
                raise
            named = f"{store.option}={store.location}" if store.location else "its PEM"
            raise ConfigError(f"{named}: not readable as certificates ({failure})") from failure
        # As in Java, every certificate in the store is trusted, not only those of root CAs.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        context.load_default_certs(purpose)
    if settings.crl_location is not None:
        named = f"{settings.crl_option}={settings.crl_location}"
        try:
            context.load_verify_locations(settings.crl_location)
        except OSError as failure:  # an SSLError is one
            why = failure.reason if isinstance(failure, ssl.SSLError) else failure.strerror
            raise ConfigError(f"{named}: {why or failure}") from failure
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own(context: ssl.SSLContext, settings: TlsSettings, own: KeyPair) -> None:
    """Load a key and its certificates through a file that only this process can see."""
    store = settings.key_store
    named = (
        f"{store.option}={store.location}"
        if store.location
        else "ssl.keystore.key and ssl.keystore.certificate.chain"
    )
    # An empty password, so that OpenSSL does not prompt on the terminal.
    secret = own.password if own.password is not None else ""
    with _in_memory(own.pem()) as path:
        try:
            context.load_cert_chain(path, password=secret)
        except (OSError, ValueError) as failure:
            password = store.key_password_option if secret else None
            raise ConfigError(f"{named}: {_why(failure, password)}") from None


def _why(failure: Exception, password_option: str | None) -> str:
    reason = getattr(failure, "reason", None) or str(failure)
    if reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the first certificate"
    if reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"OpenSSL rejects the certificate ({reason.lower().replace('_', ' ')})"
    if password_option is not None:
        return f"the key cannot be decrypted; is {password_option} right?"
    return f"not a readable key and certificate ({reason})"


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """Yield the path of a file with this content that is on no disk, where the system has such."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("barnabas-key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # only its owner may read it
        file.write(text)
        file.flush()
        yield file.name

"""What one listener shows to clients, and to other brokers as a client: built, tested, replaced.

`load` reads the stores of a listener and proves that they work. `check_successor` guards a running
listener against a store that was replaced by mistake: clients and other brokers know the broker by
its subject and its alternative names.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from barnabas.model.errors import ConfigError
from barnabas.tls.certificate import MalformedCertificate, read_certificate
from barnabas.tls.channel import TlsChannel, TlsError
from barnabas.tls.context import client_context, server_context
from barnabas.tls.distinguished_name import distinguished_name
from barnabas.tls.settings import Fingerprint, TlsSettings


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The contexts of a listener, and what they were made of."""

    settings: TlsSettings
    fingerprint: Fingerprint
    server: ssl.SSLContext
    client: ssl.SSLContext | None
    """For connections to the same listener of other brokers, if there are any."""
    subject: str
    alternative_names: frozenset[bytes]


def load(settings: TlsSettings, *, between_brokers: bool) -> TlsIdentity:
    """Return the identity of these settings; raise ConfigError if they are not usable.

    For connections between brokers, a client with these settings must be able to talk to a server
    with the same.
    """
    if not settings.key_store.is_set:
        raise ConfigError("ssl.keystore.location is not set: TLS needs a key and a certificate")
    fingerprint = settings.fingerprint()  # first: what changes while it is read is read again
    own = settings.key_store.read()
    try:
        certificate = read_certificate(own.chain[0])
    except MalformedCertificate as failure:
        raise ConfigError(f"{settings.key_store.option}: {failure}") from failure
    identity = TlsIdentity(
        settings,
        fingerprint,
        server_context(settings, own),
        client_context(settings, own) if between_brokers else None,
        distinguished_name(certificate.subject),
        certificate.alternative_names,
    )
    if between_brokers:
        unchecked = client_context(replace(settings, check_hostname=False), own)
        _converse(unchecked, identity.server)
    return identity


def check_successor(
    old: TlsIdentity, new: TlsIdentity, *, allow_dn_changes: bool, allow_san_changes: bool
) -> None:
    """Raise ConfigError if `new` is not the same broker as `old`, and must be."""
    if new.subject != old.subject and not allow_dn_changes:
        raise ConfigError(
            f"the new certificate is for {new.subject!r}, not for {old.subject!r}; "
            "set ssl.allow.dn.changes=true if that is meant"
        )
    if not old.alternative_names <= new.alternative_names and not allow_san_changes:
        raise ConfigError(
            "the new certificate lacks alternative names of the old one; "
            "set ssl.allow.san.changes=true if that is meant"
        )


def _converse(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Let two contexts shake hands in memory."""
    ours = TlsChannel(client, server_side=False)
    theirs = TlsChannel(server)
    try:
        for _ in range(8):  # TLS 1.2 needs three turns
            done = ours.handshake()
            theirs.receive(ours.pending_output())
            if theirs.handshake() and done:
                return
            ours.receive(theirs.pending_output())
    except TlsError as failure:
        raise ConfigError(
            "brokers could not connect to each other with these ssl.* options, which both sides "
            f"of a connection between brokers use: {failure}"
        ) from failure
    raise ConfigError("a TLS handshake between brokers with these ssl.* options does not end")

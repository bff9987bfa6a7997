"""The TLS options of one listener or one client, in one form."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from barnabas.model.errors import ConfigError
from barnabas.tls.stores import TYPES, KeyStore, TrustStore

Fingerprint = tuple[tuple[str, int, int, int], ...]
"""Files, each with its modification time, inode and size: changes when one is replaced."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Keys, trust and protocols; equal settings give the same context, as long as files do."""

    key_store: KeyStore = field(default_factory=KeyStore)
    trust_store: TrustStore = field(default_factory=TrustStore)
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    protocols_option: str = "ssl.enabled.protocols"
    cipher_suites: tuple[str, ...] = ()
    ciphers_option: str = "ssl.cipher.suites"
    client_auth: str = "none"
    """Of a server: none, requested or required."""
    check_hostname: bool = True
    """Of a client."""
    crl_location: str | None = None
    crl_option: str = "ssl.crl.location"

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that are read."""
        crl = () if self.crl_location is None else (self.crl_location,)
        return (*self.key_store.files, *self.trust_store.files, *crl)

    def fingerprint(self) -> Fingerprint:
        """Return what changes when one of the files does; a missing file is none."""
        found = []
        for path in self.files:
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_mtime_ns, status.st_ino, status.st_size))
        return tuple(found)


def check_store_type(option: str, name: str) -> None:
    """Raise ConfigError for a type that is unknown; Java writes them in either case."""
    if name.upper() not in TYPES:
        raise ConfigError(f"{option}={name}: must be {', '.join(TYPES[:-1])} or {TYPES[-1]}")

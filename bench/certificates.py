"""The certificates of a secured benchmark: one authority, one broker, ECDSA on P-256.

The same files serve both brokers and every client, so that TLS costs each the same arithmetic.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

CIPHER = "TLS_AES_256_GCM_SHA384"
"""The cipher suite that clients of OpenSSL prefer, and so the one that our broker chooses."""


@dataclass(frozen=True)
class Certificates:
    """Where the files are."""

    authority: Path
    broker: Path
    """Key (PKCS 8, as Java wants it) and chain."""

    @classmethod
    def write(cls, directory: Path) -> Certificates:
        """Make the certificates and write them as PEM."""
        root = trustme.CA(key_type=trustme.KeyType.ECDSA)
        issued = root.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        found = cls(directory / "authority.pem", directory / "broker.pem")
        root.cert_pem.write_to_path(str(found.authority))
        found.broker.touch(0o600)
        found.broker.write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return found

    def broker_options(self) -> dict[str, str]:
        """Return what a broker's listeners with TLS need, in Kafka's names."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.protocol": "TLSv1.3",
        }

    def client_context(self) -> ssl.SSLContext:
        """Return what a Python client trusts the broker with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.authority)
        return context

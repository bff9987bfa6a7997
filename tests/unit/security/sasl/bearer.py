"""Bearer tokens and the keys that sign them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

NOW_S = 1_700_000_000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 3600}


class Issuer:
    """A key pair with a name."""

    def __init__(self, key_id: str | None, algorithm: str) -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self.private: Any
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(
                {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}[algorithm]()
            )
            jwk = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            jwk = OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            self.private = rsa.generate_private_key(65537, 2048)
            jwk = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.jwk: dict[str, Any] = {**jwk, "use": "sig"}
        self.jwk.pop("key_ops", None)
        if key_id is not None:
            self.jwk["kid"] = key_id

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """Return a token."""
        named = {} if self.key_id is None else {"kid": self.key_id}
        return jwt.encode(claims, self.private, self.algorithm, headers={**named, **header})


@cache
def issuer(key_id: str | None = "one", algorithm: str = "ES256") -> Issuer:
    """Return an issuer of its own for each name; keys take time to make."""
    return Issuer(key_id, algorithm)


def jwks(*issuers: Issuer) -> bytes:
    """Return the public keys of issuers as they are published."""
    return json.dumps({"keys": [each.jwk for each in issuers]}).encode()


def unsecured(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """Return a token that nobody has signed."""
    return ".".join([_base64(header or {"alg": "none"}), _base64(claims), ""])


def _base64(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

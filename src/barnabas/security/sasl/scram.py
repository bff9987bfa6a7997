"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), without channel binding.

    client  n,,n=alice,r=<nonce>                   with ,tokenauth=true: alice is a token's id
    broker  r=<nonce><ours>,s=<salt>,i=<iterations>
    client  c=biws,r=<nonce><ours>,p=<proof>
    broker  v=<signature>

A user that does not exist gets a made-up salt, always the same one, and fails at the end, as a
wrong password does: nobody learns which users exist.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.client.sasl.scram_keys import xor
from barnabas.security.sasl.exchange import Login, Rejected, Step, Work, shown
from barnabas.security.sasl.scram_credentials import (
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
)

MESSAGE_BYTES_MAX = 4096
_NAME = r"(?:[^\x00,=]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^\x00,]+)*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>(?:m=[^\x00,]+,)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<bare>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class TokenLogin(NamedTuple):
    """A delegation token, as a login sees it."""

    owner: str
    ends_ms: int
    credential: ScramCredential | None
    """None until it was made, by `TokenLogins.make_credential`."""


class TokenLogins(Protocol):
    """The delegation tokens with which clients can log in."""

    def find_login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return a token, expired or not; None if there is none."""

    def make_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        """Return a token's credential; this takes milliseconds. None if the token is gone."""


class ScramSecrets(NamedTuple):
    """Where SCRAM exchanges of one broker find credentials."""

    find: Callable[[str, str], ScramCredential | None]
    """By mechanism and user."""
    tokens: TokenLogins
    salt_key: bytes
    """Same on all brokers; from it salts of unknown users are made up."""
    random_bytes: Callable[[int], bytes]


class Scram:
    """One login by SCRAM."""

    def __init__(self, mechanism: ScramMechanism, secrets: ScramSecrets) -> None:
        self._mechanism = mechanism
        self._secrets = secrets
        self._name = ""
        self._header = b""
        self._first = ""
        self._client_nonce = ""
        self._nonce = ""
        self._challenge = ""
        self._credential: ScramCredential | None = None
        self._login: Login | None = None

    def step(self, message: bytes, now_ms: int) -> Step | Work:
        if len(message) > MESSAGE_BYTES_MAX:
            raise Rejected(f"SCRAM message has more than {MESSAGE_BYTES_MAX} bytes")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise Rejected("SCRAM message is not UTF-8") from None
        return self._begin(text, now_ms) if not self._challenge else self._finish(text)

    def _begin(self, text: str, now_ms: int) -> Step | Work:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise Rejected("first SCRAM message is malformed")
        self._name = name = _unescaped(match["name"])
        if match["authorization_id"] not in (None, match["name"]):
            raise Rejected(f"authorization id differs from the user name {shown(name)}")
        self._header, self._first = match["header"].encode(), match["bare"]
        self._client_nonce = match["nonce"]
        self._nonce = self._client_nonce + self._secrets.random_bytes(18).hex()
        extensions = dict(part.split("=", 1) for part in match["extensions"].split(",")[1:])
        if extensions.get("tokenauth", "").lower() == "true":
            return self._begin_with_token(now_ms)
        credential = self._secrets.find(self._mechanism.name, name)
        if credential is not None and credential.iterations >= ITERATIONS_MIN:
            self._credential, self._login = credential, Login(name)
        return self._challenged(credential)

    def _begin_with_token(self, now_ms: int) -> Step | Work:
        tokens = self._secrets.tokens
        token = tokens.find_login(self._mechanism, self._name)
        if token is None or token.ends_ms <= now_ms:
            return self._challenged(None)
        self._login = Login(token.owner, token.ends_ms, by_token=True)
        if token.credential is None:
            return Work(self._make_credential)
        self._credential = token.credential
        return self._challenged(token.credential)

    def _make_credential(self) -> Step:
        self._credential = self._secrets.tokens.make_credential(self._mechanism, self._name)
        return self._challenged(self._credential)

    def _challenged(self, credential: ScramCredential | None) -> Step:
        if credential is not None:
            salt, iterations = credential.salt, credential.iterations
        else:
            subject = f"{self._mechanism.name} {self._name}".encode()
            salt = hmac.digest(self._secrets.salt_key, subject, "sha256")[:SALT_BYTES]
            iterations = ITERATIONS_MIN
        self._challenge = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}"
        return Step(self._challenge.encode())

    def _finish(self, text: str) -> Step:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise Rejected("last SCRAM message is malformed")
        # librdkafka before 2.6 repeats its own half, which Kafka accepts as well.
        if match["nonce"] not in (self._nonce, self._client_nonce + self._nonce):
            raise Rejected(f"nonce of the last SCRAM message is another, user {shown(self._name)}")
        if _bytes(match["binding"]) != self._header:
            raise Rejected("channel binding of the last SCRAM message differs from the first")
        proof = _bytes(match["proof"])
        credential, login = self._credential, self._login
        if credential is None or login is None:
            raise Rejected(f"unknown user or wrong password: {shown(self._name)}")
        digest = self._mechanism.digest
        exchanged = f"{self._first},{self._challenge},{match['bare']}".encode()
        signature = hmac.digest(credential.stored_key, exchanged, digest)
        if len(proof) != len(signature):
            raise Rejected("proof of the last SCRAM message has the wrong length")
        stored_key = hashlib.new(digest, xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise Rejected(f"unknown user or wrong password: {shown(self._name)}")
        verifier = hmac.digest(credential.server_key, exchanged, digest)
        return Step(b"v=" + b64encode(verifier), login)


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        raise Rejected("last SCRAM message is malformed") from None

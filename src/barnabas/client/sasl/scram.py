"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802): both sides prove that they know the password.

    client  n,,n=alice,r=<nonce>[,tokenauth=true]
    broker  r=<nonce><theirs>,s=<salt>,i=<iterations>
    client  c=biws,r=<nonce><theirs>,p=<proof>
    broker  v=<signature>

With `tokenauth` name and password are the id and the HMAC of a delegation token. The broker's proof
is checked: one that does not know the password is rejected like a wrong password would be.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable

from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.scram_keys import ScramKeys, salted_password, scram_keys, xor
from barnabas.model.errors import ConfigError

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NONCE_BYTES = 18
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 1_000_000
"""Fewer would make the password easy to guess; more would keep the client busy for seconds."""

_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<count>[0-9]{1,10})"
    r"(?:,.*)?"
)
_FINAL = re.compile(r"(?:v=(?P<verifier>[A-Za-z0-9+/=]+)|e=(?P<error>[^,]+))(?:,.*)?")


class Scram:
    """One login; `first` and two challenges."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        random_bytes: Callable[[int], bytes],
        *,
        by_token: bool = False,
    ) -> None:
        if re.search(r"[\x00-\x1f\x7f]", username) or not username:
            raise ConfigError(
                f"sasl.plain.username and sasl.plain.password cannot be used with {mechanism}: "
                f"control characters in the name, or no name"
            )
        self._mechanism = mechanism
        self._digest = DIGESTS[mechanism]
        self._password = password
        self._nonce = b64encode(random_bytes(NONCE_BYTES)).decode()
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}" + (",tokenauth=true" if by_token else "")
        self._keys: ScramKeys | None = None
        self._exchanged = b""
        self.done = False

    async def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    async def next(self, challenge: bytes) -> bytes:
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise self._unproved("its message is not UTF-8") from None
        if self._keys is None:
            return await self._prove(text)
        self._check(text, self._keys)
        self.done = True
        return b""

    async def _prove(self, challenge: str) -> bytes:
        match = _FIRST.fullmatch(challenge)
        if match is None:
            raise self._unproved("its first message is malformed")
        nonce, iterations = match["nonce"], int(match["count"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise self._unproved("its nonce does not continue ours")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise self._unproved(
                f"it demands {iterations} iterations; must be {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            )
        digest, salt = self._digest, self._bytes(match["salt"])
        loop = asyncio.get_running_loop()
        salted = await loop.run_in_executor(
            None, salted_password, digest, self._password, salt, iterations
        )
        self._keys = keys = scram_keys(digest, salted)
        bare = f"c={b64encode(b'n,,').decode()},r={nonce}"
        self._exchanged = f"{self._bare},{challenge},{bare}".encode()
        proof = xor(keys.client_key, hmac.digest(keys.stored_key, self._exchanged, digest))
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def _check(self, answer: str, keys: ScramKeys) -> None:
        match = _FINAL.fullmatch(answer)
        if match is None:
            raise self._unproved("its last message is malformed")
        if match["error"] is not None:
            raise self._unproved(f"it says {match['error']!r}")
        expected = hmac.digest(keys.server_key, self._exchanged, self._digest)
        if not hmac.compare_digest(self._bytes(match["verifier"]), expected):
            raise self._unproved("its signature is another")

    def _bytes(self, text: str) -> bytes:
        try:
            return b64decode(text, validate=True)
        except ValueError:
            raise self._unproved("its message is not base64") from None

    def _unproved(self, why: str) -> AuthenticationFailedError:
        return AuthenticationFailedError(
            f"the broker could not prove that it knows the password ({self._mechanism}): {why}"
        )

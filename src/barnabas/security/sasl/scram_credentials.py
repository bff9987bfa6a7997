"""SCRAM credentials: what a broker knows of a password, and its form in the coordination tree.

    salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d…,server_key=wfPL…,iterations=4096

is the value of the config `SCRAM-SHA-256` of a user, beside the user's quotas.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.sasl.scram_keys import salted_password, scram_keys
from barnabas.model.errors import InvalidValueError

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16_384
SALT_BYTES = 16


class ScramMechanism(NamedTuple):
    """One of the two SCRAM mechanisms."""

    name: str
    number: int
    """As in AlterUserScramCredentials."""
    digest: str


SHA_256 = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512 = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Mapping[str, ScramMechanism] = {each.name: each for each in (SHA_256, SHA_512)}
BY_NUMBER: Mapping[int, ScramMechanism] = {each.number: each for each in (SHA_256, SHA_512)}


class ScramCredential(NamedTuple):
    """Enough to check a password, not to know it; secret all the same."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"

    def encode(self) -> str:
        """Return the credential as Kafka stores it."""
        salt, stored, server = (b64encode(part).decode() for part in self[:3])
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"

    @classmethod
    def decode(cls, text: str) -> ScramCredential:
        """Read a stored credential; the error shows nothing of it."""
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        try:
            salt, stored_key, server_key = (
                b64decode(fields[name], validate=True)
                for name in ("salt", "stored_key", "server_key")
            )
            return cls(salt, stored_key, server_key, int(fields["iterations"]))
        except (KeyError, ValueError):
            raise InvalidValueError("a stored SCRAM credential cannot be read") from None

    @classmethod
    def of_salted(
        cls, mechanism: ScramMechanism, salt: bytes, salted: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential of a password that the client has salted itself."""
        keys = scram_keys(mechanism.digest, salted)
        return cls(salt, keys.stored_key, keys.server_key, iterations)

    @classmethod
    def of_password(
        cls,
        mechanism: ScramMechanism,
        password: str,
        salt: bytes,
        iterations: int = ITERATIONS_MIN,
    ) -> ScramCredential:
        """Return the credential of a password; this takes milliseconds."""
        salted = salted_password(mechanism.digest, password, salt, iterations)
        return cls.of_salted(mechanism, salt, salted, iterations)


class ScramCredentials:
    """The credentials of all users, by mechanism and name."""

    def __init__(self) -> None:
        self._by_mechanism: dict[str, dict[str, ScramCredential]] = {
            name: {} for name in MECHANISMS
        }

    def find(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential."""
        return self._by_mechanism[mechanism].get(user)

    def of_user(self, user: str) -> dict[str, ScramCredential]:
        """Return a user's credentials, by mechanism."""
        return {
            mechanism: users[user]
            for mechanism, users in self._by_mechanism.items()
            if user in users
        }

    @property
    def users(self) -> list[str]:
        """Return all users with credentials, sorted."""
        return sorted(set().union(*self._by_mechanism.values()))

    def set_user(self, user: str, configs: Mapping[str, str]) -> list[str]:
        """Replace a user's credentials by those among configs; return mechanisms not readable.

        A credential that cannot be read lets nobody in.
        """
        unreadable = []
        for mechanism, users in self._by_mechanism.items():
            users.pop(user, None)
            text = configs.get(mechanism)
            if text is not None:
                try:
                    users[user] = ScramCredential.decode(text)
                except InvalidValueError:
                    unreadable.append(mechanism)
        return unreadable

"""SCRAM credentials of users."""

from __future__ import annotations

from barnabas.admin import scram as ours
from barnabas.compat.confluent_kafka.model import OrderedEnum


class ScramMechanism(OrderedEnum):
    """The hash of passwords."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class ScramCredentialInfo:
    """A mechanism with its iterations."""

    def __init__(self, mechanism: ScramMechanism, iterations: int) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class UserScramCredentialsDescription:
    """The credentials of a user."""

    def __init__(self, user: str, scram_credential_infos: list[ScramCredentialInfo]) -> None:
        self.user = user
        self.scram_credential_infos = scram_credential_infos


class UserScramCredentialAlteration:
    """A change to a user's credentials."""

    def __init__(self, user: str) -> None:
        if not isinstance(user, str):
            raise TypeError("'user' must be a string")
        if not user:
            raise ValueError("'user' cannot be empty")
        self.user = user

    @property
    def ours(self) -> ours.Alteration:
        """The change as our admin client takes it."""
        raise NotImplementedError


class UserScramCredentialUpsertion(UserScramCredentialAlteration):
    """A credential to set."""

    def __init__(
        self,
        user: str,
        scram_credential_info: ScramCredentialInfo,
        password: bytes,
        salt: bytes | None = None,
    ) -> None:
        super().__init__(user)
        self.scram_credential_info = scram_credential_info
        self.password = password
        self.salt = salt

    @property
    def ours(self) -> ours.Alteration:
        info = self.scram_credential_info
        mechanism = ours.ScramMechanism(info.mechanism.value)
        return ours.UserScramCredentialUpsertion(
            self.user, mechanism, self.password, info.iterations, self.salt
        )


class UserScramCredentialDeletion(UserScramCredentialAlteration):
    """A credential to remove."""

    def __init__(self, user: str, mechanism: ScramMechanism) -> None:
        super().__init__(user)
        self.mechanism = mechanism

    @property
    def ours(self) -> ours.Alteration:
        return ours.UserScramCredentialDeletion(
            self.user, ours.ScramMechanism(self.mechanism.value)
        )


def description_of(
    user: str, found: tuple[ours.ScramCredential, ...]
) -> UserScramCredentialsDescription:
    """Return the credentials that a broker has named."""
    return UserScramCredentialsDescription(
        user,
        [
            ScramCredentialInfo(ScramMechanism(int(each.mechanism)), each.iterations)
            for each in found
        ],
    )

"""SCRAM credentials of users: which mechanisms they have, and setting or removing them.

Passwords never leave this process: the broker gets them salted and hashed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check, failure, failure_or_none
from barnabas.admin.numbered import chosen, member_of
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

DEFAULT_ITERATIONS = 4096
SALT_BYTES = 24


class ScramMechanism(IntEnum):
    """The hash of passwords."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """Return hashlib's name of the hash."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A mechanism that a user can authenticate with."""

    mechanism: ScramMechanism
    iterations: int


class UserScramCredentialDeletion:
    """A credential to remove.

    UserScramCredentialDeletion("ada", "SCRAM-SHA-256")
    """

    def __init__(self, user: str, mechanism: ScramMechanism | int | str) -> None:
        self.user = user
        self.mechanism = chosen(ScramMechanism, mechanism)

    def __repr__(self) -> str:
        return f"UserScramCredentialDeletion({self.user!r}, {self.mechanism.name})"


class UserScramCredentialUpsertion:
    """A credential to set, replacing one that the user may have for the same mechanism.

    UserScramCredentialUpsertion("ada", "SCRAM-SHA-512", "secret", iterations=8192)
    """

    def __init__(
        self,
        user: str,
        mechanism: ScramMechanism | int | str,
        password: str | bytes,
        iterations: int | None = None,
        salt: bytes | None = None,
    ) -> None:
        self.user = user
        self.mechanism = chosen(ScramMechanism, mechanism)
        if self.mechanism is ScramMechanism.UNKNOWN:
            raise InvalidValueError(f"user {user!r}: SCRAM mechanism UNKNOWN cannot be set")
        self.iterations = DEFAULT_ITERATIONS if iterations is None else iterations
        if self.iterations < 1:
            raise InvalidValueError(
                f"user {user!r}: iterations={self.iterations} must be at least 1"
            )
        self.salt = os.urandom(SALT_BYTES) if salt is None else salt
        secret = password.encode() if isinstance(password, str) else password
        self.salted_password = hashlib.pbkdf2_hmac(
            self.mechanism.hash_name, secret, self.salt, self.iterations
        )

    def __repr__(self) -> str:
        return (
            f"UserScramCredentialUpsertion({self.user!r}, {self.mechanism.name}, "
            f"iterations={self.iterations})"
        )


Alteration = UserScramCredentialDeletion | UserScramCredentialUpsertion


async def describe_user_scram_credentials(
    client: ClusterClient, users: Iterable[str] | None = None, *, timeout_ms: float | None = None
) -> dict[str, tuple[ScramCredential, ...] | RequestError]:
    """Return the credentials of users (None: all that have some), without their secrets."""
    wanted = None if users is None else [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=wanted)

    async def attempt() -> DescribeUserScramCredentialsResponse:
        response: DescribeUserScramCredentialsResponse = await client.send(request)
        check(response.error_code, "SCRAM credentials", response.error_message)
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return {
        result.user: failure(result.error_code, result.user, result.error_message)
        if result.error_code
        else tuple(
            ScramCredential(member_of(ScramMechanism, info.mechanism), info.iterations)
            for info in result.credential_infos
        )
        for result in response.results
    }


async def alter_user_scram_credentials(
    client: ClusterClient, alterations: Iterable[Alteration], *, timeout_ms: float | None = None
) -> Mapping[str, RequestError | None]:
    """Set and remove credentials; each user succeeds or fails on its own.

    await alter_user_scram_credentials(client, [
        UserScramCredentialUpsertion("ada", ScramMechanism.SCRAM_SHA_512, "secret")])
    """
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []
    for each in alterations:
        if isinstance(each, UserScramCredentialDeletion):
            deletions.append(ScramCredentialDeletion(name=each.user, mechanism=each.mechanism))
        elif isinstance(each, UserScramCredentialUpsertion):
            upsertions.append(
                ScramCredentialUpsertion(
                    name=each.user,
                    mechanism=each.mechanism,
                    iterations=each.iterations,
                    salt=each.salt,
                    salted_password=each.salted_password,
                )
            )
        else:
            raise InvalidValueError(
                f"alteration {each!r}: must be UserScramCredentialDeletion "
                "or UserScramCredentialUpsertion"
            )

    async def ask(connection: Connection) -> AlterUserScramCredentialsResponse:
        request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
        response: AlterUserScramCredentialsResponse = await connection.send(request)
        for result in response.results:
            if result.error_code == ErrorCode.NOT_CONTROLLER:
                check(result.error_code, "SCRAM credentials")
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return {
        result.user: failure_or_none(result.error_code, result.user, result.error_message)
        for result in response.results
    }

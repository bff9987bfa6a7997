"""Security of a cluster for tests: who may connect, and with which options.

Certificates are issued once per process, which takes milliseconds, by an authority that no other
process trusts. Users and ACLs that are added to a running cluster count on all its brokers when
the call returns.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from barnabas.admin.acls import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    create_acls,
    describe_acls,
)
from barnabas.admin.scram import (
    ScramMechanism,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import AuthenticationFailedError
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.errors import InvalidValueError
from barnabas.security.authorizer import CLUSTER_NAME
from barnabas.security.initial_users import SUFFIX, InitialUser
from barnabas.security.setup.broker_options import (
    ADMIN,
    BROKER,
    LOOPBACK,
    PROTOCOLS,
    SASL_PLAINTEXT,
    SSL,
    new_secret,
    shared_options,
)
from barnabas.security.setup.certificates import Authority, check_library, new_key
from barnabas.security.setup.client_options import ClientOptions
from barnabas.security.setup.files import create, replace
from barnabas.testing.shared_loop import SharedLoop

Result = TypeVar("Result")

STYLES = ("kafka", "librdkafka", "kafka-python", "aiokafka")
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_RETRY_S = 0.02
_DEADLINE_S = 60.0


def protocol_named(name: str) -> str:
    """Return a security protocol of Kafka by its name, in any case."""
    if name.upper() not in PROTOCOLS:
        names = ", ".join(each.lower() for each in PROTOCOLS)
        raise InvalidValueError(f"security={name!r}: must be one of {names}")
    return name.upper()


class ClusterSecurity:
    """Who may connect to one cluster."""

    def __init__(self, protocol: str, directory: Path) -> None:
        """Create the files of a cluster, with an administrator, in a new directory."""
        if protocol != SASL_PLAINTEXT:
            check_library()
        self.protocol = protocol
        self._directory = directory
        self._users = directory / "users"
        self._passwords: dict[str, str] = {}
        self._users.mkdir(parents=True, mode=0o700)
        if self._uses_tls:
            create(self._cafile, authority()[0])
            create(directory / "broker.pem", certificate(BROKER, LOOPBACK))
        self._shared = shared_options(
            protocol,
            truststore=self._cafile,
            users=self._users if self._uses_sasl else None,
            random_bytes=os.urandom,
        )
        self.prepare_user(ADMIN, None)

    @property
    def _uses_tls(self) -> bool:
        return self.protocol != SASL_PLAINTEXT

    @property
    def _uses_sasl(self) -> bool:
        return self.protocol != SSL

    @property
    def _cafile(self) -> Path:
        return self._directory / "ca.crt"

    def broker_options(self) -> dict[str, str]:
        """Return the options that make a broker secured, besides its listener."""
        if not self._uses_tls:
            return self._shared
        return {**self._shared, "ssl.keystore.location": str(self._directory / "broker.pem")}

    def client_options(self, bootstrap: str, user: str, style: str) -> dict[str, Any]:
        """Return the options of a user, as a library names them."""
        if user not in self._passwords:
            known = ", ".join(self._passwords)
            raise InvalidValueError(f"user {user!r}: must be one of {known}; see add_user")
        options = ClientOptions(
            bootstrap,
            self.protocol,
            self._cafile,
            user,
            self._passwords[user],
            self._keystore(user) if self.protocol == SSL else None,
        )
        return in_style(options, style)

    def prepare_user(self, name: str, password: str | None) -> None:
        """Add a user for the brokers that start from now on."""
        self._remember(name, password)
        if self._uses_sasl:
            user = InitialUser.of_password(name, self._passwords[name], os.urandom)
            replace(self._users / f"{name.encode().hex()}{SUFFIX}", user.encode().encode())

    def add_user(self, name: str, password: str | None, addresses: Sequence[str]) -> None:
        """Add a user to running brokers, or change the password."""
        self._remember(name, password)
        if self._uses_sasl:
            _run(self._add_user(name, addresses))

    def allow(
        self,
        principal: str,
        operations: Iterable[str],
        resources: Mapping[str, str | None],
        *,
        cluster: bool,
        prefixed: bool,
        addresses: Sequence[str],
    ) -> None:
        """Add ACLs that allow operations on resources, by their types."""
        patterns = [
            ResourcePattern(
                _RESOURCES[kind],
                name,
                ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL,
            )
            for kind, name in resources.items()
            if name is not None
        ]
        if cluster:
            patterns.append(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME))
        acls = [
            ACL(principal, "*", _operation(name), ACLPermissionType.ALLOW, pattern)
            for name in operations
            for pattern in patterns
        ]
        if not acls:
            raise InvalidValueError(
                "allow: needs an operation, and a topic, group, transactional_id or cluster"
            )
        _run(self._allow(acls, addresses))

    async def _add_user(self, name: str, addresses: Sequence[str]) -> None:
        changes = [
            UserScramCredentialUpsertion(name, mechanism, self._passwords[name])
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        async with self._client(addresses, ADMIN) as client:
            for change in changes:  # a request may have one change of a user
                for error in (await alter_user_scram_credentials(client, [change])).values():
                    if error is not None:
                        raise error

        async def logs_in(address: str) -> bool:
            async with self._client([address], name) as client:
                try:
                    await client.connection()
                except AuthenticationFailedError:
                    return False
                return True

        await _on_each(addresses, logs_in)

    async def _allow(self, acls: list[ACL], addresses: Sequence[str]) -> None:
        async with self._client(addresses, ADMIN) as client:
            for outcome in await create_acls(client, acls):
                if outcome.error is not None:
                    raise outcome.error

        async def knows(address: str) -> bool:
            # It has no metadata, so that it asks the one broker whose address it has.
            async with self._client([address], ADMIN) as client:
                return all([await describe_acls(client, acl) for acl in acls])

        await _on_each(addresses, knows)

    def _client(self, addresses: Sequence[str], user: str) -> ClusterClient:
        options = self.client_options(",".join(addresses), user, "kafka")
        return ClusterClient.from_options(parse_client_options(AdminOptions, options))

    def _remember(self, name: str, password: str | None) -> None:
        if not name or name == BROKER:
            raise InvalidValueError(f"user {name!r}: must be a name, other than {BROKER}")
        self._passwords[name] = new_secret(os.urandom) if password is None else password
        if self._uses_tls:
            create(self._keystore(name), certificate(name))

    def _keystore(self, user: str) -> Path:
        return self._directory / f"user-{user.encode().hex()}.pem"  # a name may have any character


def in_style(options: ClientOptions, style: str) -> dict[str, Any]:
    """Return the options as a library names them."""
    if style == "kafka":
        return {**options.kafka()}
    if style == "librdkafka":
        return {**options.librdkafka()}
    if style == "kafka-python":
        return {**options.kafka_python()}
    if style != "aiokafka":
        raise InvalidValueError(f"style={style!r}: must be one of {', '.join(STYLES)}")
    arguments: dict[str, Any] = {
        name: value for name, value in options.kafka_python().items() if not name.startswith("ssl_")
    }
    if options.uses_tls:  # it has no options for files
        context = arguments["ssl_context"] = ssl.create_default_context(cafile=options.cafile)
        if options.keystore is not None:
            context.load_cert_chain(options.keystore)
    return arguments


@cache
def authority() -> tuple[bytes, Authority]:
    """Return the certificate (PEM) of this process's authority, and the authority."""
    key = new_key()
    certificate = Authority.certify(key, "Barnabas test CA", datetime.now(UTC))
    return certificate, Authority(key, certificate)


@cache
def certificate(name: str, hosts: tuple[str, ...] = ()) -> bytes:
    """Return a key with its certificate (PEM)."""
    return authority()[1].issue(name, hosts, datetime.now(UTC))


def _operation(name: str) -> ACLOperation:
    try:
        operation = ACLOperation[name.upper().replace("-", "_")]
    except KeyError:
        operation = ACLOperation.UNKNOWN
    if operation in (ACLOperation.UNKNOWN, ACLOperation.ANY):
        known = ", ".join(each.name.lower() for each in ACLOperation if each > ACLOperation.ANY)
        raise InvalidValueError(f"operation {name!r}: must be one of {known}")
    return operation


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread of its own: the caller may be on a loop."""
    with closing(SharedLoop()) as loop:
        return loop.run(work)


async def _on_each(
    addresses: Sequence[str], condition: Callable[[str], Coroutine[Any, Any, bool]]
) -> None:
    """Wait until a condition holds for every broker."""
    async with asyncio.timeout(_DEADLINE_S):
        for address in addresses:
            while True:
                if await condition(address):
                    break
                await asyncio.sleep(_RETRY_S)

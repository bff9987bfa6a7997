"""Users that a broker adds to its cluster once: credentials and ACLs, in a file per user.

Someone must be able to log in before anyone can add users. `barnabas security init` writes these
files, the broker reads them. They have what SCRAM stores of a password, not the password.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.security.acl.binding import (
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
    check_binding,
    title,
)
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.sasl.scram_credentials import MECHANISMS, SALT_BYTES, ScramCredential

SUFFIX = ".json"

_TYPES = {title(each): each for each in ResourceType}
_OPERATIONS = {title(each): each for each in Operation}
_PERMISSIONS = {title(each): each for each in Permission}


@dataclass(frozen=True, slots=True)
class InitialUser:
    """A user to add, unless that was done before."""

    name: str
    credentials: Mapping[str, str] = field(repr=False)
    """Stored credentials, by SCRAM mechanism."""
    acls: tuple[Binding, ...] = ()

    @classmethod
    def of_password(
        cls,
        name: str,
        password: str,
        random_bytes: Callable[[int], bytes],
        acls: tuple[Binding, ...] = (),
    ) -> InitialUser:
        """Return a user who logs in by a password, with either SCRAM mechanism."""
        credentials = {
            mechanism.name: ScramCredential.of_password(
                mechanism, password, random_bytes(SALT_BYTES)
            ).encode()
            for mechanism in MECHANISMS.values()
        }
        return cls(name, credentials, acls)

    def encode(self) -> str:
        """Return the content of the user's file."""
        acls = [
            {
                "resourceType": title(pattern.resource_type),
                "name": pattern.name,
                "patternType": pattern.pattern_type.name,
                "principal": entry.principal,
                "permissionType": title(entry.permission),
                "operation": title(entry.operation),
                "host": entry.host,
            }
            for pattern, entry in self.acls
        ]
        value = {
            "version": 1,
            "user": self.name,
            "credentials": dict(self.credentials),
            "acls": acls,
        }
        return json.dumps(value, indent=2) + "\n"

    @classmethod
    def decode(cls, path: str, data: bytes) -> InitialUser:
        """Read a file; the error names it, and shows nothing of the credentials."""
        try:
            value = json.loads(data)
            user = cls(
                str(value["user"]),
                {str(name): str(text) for name, text in value["credentials"].items()},
                tuple(_binding(each) for each in value["acls"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{path}: is not the file of an initial user") from None
        if not user.name:
            raise ConfigError(f"{path}: the name of the user is empty")
        for mechanism, text in user.credentials.items():
            if mechanism not in MECHANISMS:
                raise ConfigError(
                    f"{path}: mechanism {mechanism}: must be {' or '.join(MECHANISMS)}"
                )
            try:
                ScramCredential.decode(text)
            except InvalidValueError as failure:
                raise ConfigError(f"{path}: {mechanism}: {failure}") from None
        for binding in user.acls:
            try:
                check_binding(binding)
            except InvalidValueError as failure:
                raise ConfigError(f"{path}: {failure}") from None
        return user


def own_names(user: str, prefix: str) -> tuple[Binding, ...]:
    """Return ACLs of a user who has all topics, groups and transactional ids with a prefix."""
    operations = {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DESCRIBE_CONFIGS,
        ),
        ResourceType.GROUP: (Operation.READ, Operation.DELETE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    }
    return tuple(
        Binding(
            Pattern(resource_type, prefix, PatternType.PREFIXED),
            Entry(f"User:{user}", "*", operation, Permission.ALLOW),
        )
        for resource_type, allowed in operations.items()
        for operation in allowed
    )


def _binding(value: Mapping[str, object]) -> Binding:
    return Binding(
        Pattern(
            _TYPES[str(value["resourceType"])],
            str(value["name"]),
            PatternType[str(value["patternType"])],
        ),
        Entry(
            str(value["principal"]),
            str(value["host"]),
            _OPERATIONS[str(value["operation"])],
            _PERMISSIONS[str(value["permissionType"])],
        ),
    )

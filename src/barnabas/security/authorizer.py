"""Authorization: may this principal do this to that resource? Every handler asks first.

`AllowAll` is the authorizer of a broker without `authorizer.class.name`. Numbers of operations and
resource types are the protocol's own (they appear in ACL requests and in `authorizedOperations`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from barnabas.security.principal import Principal


class Operation(IntEnum):
    """Operations on a resource."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Types of resources."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
"""The one resource of type CLUSTER."""

SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


class Authorizer(Protocol):
    """Decides without I/O and never waits."""

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        """Return whether the principal, calling from host, may do the operation on the resource."""


class AllowAll:
    """The authorizer of an open cluster."""

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        """Allow everything."""
        return True


def authorized_bits(
    authorizer: Authorizer, principal: Principal, host: str, resource: ResourceType, name: str
) -> int:
    """Return the bit field of allowed operations, for `authorizedOperations` fields."""
    bits = 0
    for operation in SUPPORTED_OPERATIONS[resource]:
        if authorizer.allows(principal, host, operation, resource, name):
            bits |= 1 << operation
    return bits

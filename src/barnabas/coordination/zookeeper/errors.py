"""ZooKeeper's errors, translated to those of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.coordination.contract import (
    CoordinationError,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NoPermission,
    NotEmpty,
    parent_of,
)
from barnabas.coordination.zookeeper.link import errors

_REMEDY = (
    "log in as the user that created it (java.security.auth.login.config, "
    "barnabas.zookeeper.credentials or zookeeper.ssl.keystore.location), or have that user run "
    "`barnabas zookeeper-security`"
)


class Unimplemented(CoordinationError):
    """The server is too old for the request."""


def refusal(failure: Exception, path: str) -> CoordinationError:
    """Return the contract's error for one of ZooKeeper's."""
    if isinstance(failure, errors.NoNodeError):
        return NoNode(path, f"{path} does not exist")
    if isinstance(failure, errors.NodeExistsError):
        return NodeExists(path, f"{path} already exists")
    if isinstance(failure, errors.NotEmptyError):
        return NotEmpty(path, f"{path} has children")
    if isinstance(failure, errors.NoChildrenForEphemeralsError):
        parent = parent_of(path)
        return NoChildrenForEphemerals(path, f"{parent} is ephemeral and cannot have children")
    if isinstance(failure, errors.NoAuthError):
        return NoPermission(path, f"{path}: not allowed by ZooKeeper's ACL; {_REMEDY}")
    if isinstance(failure, errors.InvalidACLError):
        return NoPermission(
            path,
            f"{path}: zookeeper.set.acl=true, but ZooKeeper does not know who the broker is: "
            "check its login, its credentials or its certificate",
        )
    if isinstance(failure, errors.AuthFailedError):
        return NoPermission(path, "ZooKeeper rejected the credentials")
    if isinstance(failure, errors.SessionClosedRequireSaslError):
        return NoPermission(
            path,
            "ZooKeeper demands a login (SASL): set java.security.auth.login.config to a file with "
            "a section Client",
        )
    if isinstance(failure, errors.UnimplementedError):
        return Unimplemented(path, f"{path}: not supported by this version of ZooKeeper")
    reason = str(failure) or type(failure).__name__
    return CoordinationError(path, f"{path}: ZooKeeper refused: {reason}")


def first_failure(answer: Sequence[Any]) -> tuple[int, Exception] | None:
    """Return the operation that failed a transaction; the others report a rollback."""
    for index, each in enumerate(answer):
        if isinstance(each, Exception) and not isinstance(
            each, errors.RolledBackError | errors.RuntimeInconsistency
        ):
            return index, each
    return None

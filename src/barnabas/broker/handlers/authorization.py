"""What each API asks the authorizer, in which order, and how it answers when that is denied.

This table is the contract that handlers fulfil; the acceptance test is generated from it, and fails
for an API that is served without a row. The same test can run against Apache Kafka.

Resources exist, or not, only for those who may know: the authorizer is asked before anything is
looked up, so an absent topic is denied like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE = Operation.ALTER, Operation.DESCRIBE
CLUSTER_ACTION, IDEMPOTENT_WRITE = Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

_CODES = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Answer(Enum):
    """Where a response says that something was denied."""

    WHOLE = "an error of the whole response"
    EACH = "an error of each part"
    BOTH = "an error of the whole response and of each part"
    OMITTED = "left out, without an error"


class Permission(NamedTuple):
    """An operation on a type of resource."""

    operation: Operation
    resource: ResourceType


@dataclass(frozen=True, slots=True)
class Need:
    """One of some permissions, and the answer without any of them."""

    any_of: tuple[Permission, ...]
    answer: Answer
    code: ErrorCode
    named: bool | None = None
    """Whether the answer names the denied resource; None if it has no field for that."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of request of an API, and what it needs, in the order in which that is checked."""

    name: str
    needs: tuple[Need, ...]
    first_version: int = 0
    last_version: int | None = None

    def covers(self, version: int) -> bool:
        """Return whether the case exists in a version of the API."""
        last = self.last_version
        return self.first_version <= version and (last is None or version <= last)


def _need(
    answer: Answer,
    *permissions: tuple[Operation, ResourceType],
    code: ErrorCode | None = None,
    named: bool | None = None,
) -> Need:
    any_of = tuple(Permission(*each) for each in permissions)
    if answer is Answer.OMITTED:
        code, named = ErrorCode.NONE, False
    return Need(any_of, answer, code or _CODES[any_of[-1].resource], named)


def _whole(*permissions: tuple[Operation, ResourceType], code: ErrorCode | None = None) -> Need:
    return _need(Answer.WHOLE, *permissions, code=code)


def _each(
    *permissions: tuple[Operation, ResourceType],
    code: ErrorCode | None = None,
    named: bool | None = None,
) -> Need:
    return _need(Answer.EACH, *permissions, code=code, named=named)


def _omitted(*permissions: tuple[Operation, ResourceType]) -> Need:
    return _need(Answer.OMITTED, *permissions)


def _topic(operation: Operation, *, named: bool | None = True) -> Need:
    """Return the usual need of a topic: a denied one has its error beside its name."""
    return _each((operation, TOPIC), named=named)


def _case(name: str, *needs: Need, first: int = 0, last: int | None = None) -> Case:
    return Case(name, needs, first, last)


_GROUP_MEMBER = (_case("a group", _whole((READ, GROUP))),)
_BROKER = (_case("a broker", _whole((CLUSTER_ACTION, CLUSTER))),)
_OPEN: tuple[Case, ...] = ()
"""Everyone may ask."""


def _configs(operation: Operation, *, loggers: bool = True) -> tuple[Case, ...]:
    cases = (
        _case("a topic", _each((operation, TOPIC), named=True)),
        _case("a broker", _each((operation, CLUSTER))),
        _case("a group", _each((operation, GROUP), named=True)),
        _case("client metrics", _each((operation, CLUSTER))),
    )
    if not loggers:
        return cases
    return (*cases, _case("a broker's loggers", _each((operation, CLUSTER))))


AUTHORIZATION: dict[str, tuple[Case, ...]] = {
    "Produce": (
        _case("by name", _topic(WRITE), last=12),
        _case("by id", _topic(WRITE, named=False), first=13),
        _case(
            "a transaction",
            _each((WRITE, TRANSACTION)),
            _topic(WRITE, named=None),
            first=3,
        ),
    ),
    "Fetch": (
        _case("by name", _topic(READ), last=12),
        _case("by id", _topic(READ, named=False), first=13),
        _case(
            "a follower",
            _each((CLUSTER_ACTION, CLUSTER), code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ),
    ),
    "ListOffsets": (_case("a topic", _topic(DESCRIBE)),),
    "Metadata": (
        _case("all topics", _omitted((DESCRIBE, TOPIC))),
        _case("by name", _topic(DESCRIBE)),
        _case("by id", _topic(DESCRIBE, named=False), first=12),
        _case(
            "a missing topic",
            _topic(DESCRIBE),
            _each((CREATE, CLUSTER), (CREATE, TOPIC), named=True),
        ),
    ),
    "OffsetCommit": (
        _case("by name", _each((READ, GROUP)), _topic(READ), last=9),
        _case("by id", _each((READ, GROUP)), _topic(READ, named=False), first=10),
    ),
    "OffsetFetch": (
        _case("v0", _each((DESCRIBE, GROUP)), _topic(DESCRIBE), last=1),
        _case("v2", _whole((DESCRIBE, GROUP)), _topic(DESCRIBE), first=2, last=7),
        _case("v8", _each((DESCRIBE, GROUP)), _topic(DESCRIBE), first=8, last=9),
        _case("by id", _each((DESCRIBE, GROUP)), _topic(DESCRIBE, named=False), first=10),
        _case("all, v2", _whole((DESCRIBE, GROUP)), _omitted((DESCRIBE, TOPIC)), first=2, last=7),
        _case("all, v8", _each((DESCRIBE, GROUP)), _omitted((DESCRIBE, TOPIC)), first=8, last=9),
    ),
    "FindCoordinator": (
        _case("a group", _whole((DESCRIBE, GROUP)), last=3),
        _case("groups", _each((DESCRIBE, GROUP), named=True), first=4),
        _case("a transaction", _whole((DESCRIBE, TRANSACTION)), first=1, last=3),
        _case("transactions", _each((DESCRIBE, TRANSACTION), named=True), first=4),
    ),
    "JoinGroup": _GROUP_MEMBER,
    "Heartbeat": _GROUP_MEMBER,
    "LeaveGroup": _GROUP_MEMBER,
    "SyncGroup": _GROUP_MEMBER,
    "DescribeGroups": (_case("a group", _each((DESCRIBE, GROUP), named=True)),),
    "ListGroups": (_case("all groups", _omitted((DESCRIBE, CLUSTER), (DESCRIBE, GROUP))),),
    "SaslHandshake": _OPEN,
    "SaslAuthenticate": _OPEN,
    "ApiVersions": _OPEN,
    "CreateTopics": (_case("a topic", _each((CREATE, CLUSTER), (CREATE, TOPIC), named=True)),),
    "DeleteTopics": (
        _case("by name", _topic(DELETE)),
        _case("by id", _topic(DESCRIBE, named=False), _topic(DELETE), first=6),
    ),
    "DeleteRecords": (_case("a topic", _topic(DELETE)),),
    "InitProducerId": (
        _case("a transaction", _whole((WRITE, TRANSACTION))),
        _case(
            "no transaction",
            _whole(
                (IDEMPOTENT_WRITE, CLUSTER),
                (WRITE, TOPIC),
                code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ),
        ),
    ),
    "OffsetForLeaderEpoch": (
        _case("a topic", _each((CLUSTER_ACTION, CLUSTER), (DESCRIBE, TOPIC), named=True)),
    ),
    "AddPartitionsToTxn": (
        _case("a client", _each((WRITE, TRANSACTION)), _topic(WRITE), last=3),
        _case("a broker", _whole((CLUSTER_ACTION, CLUSTER)), first=4),
    ),
    "AddOffsetsToTxn": (_case("a group", _whole((WRITE, TRANSACTION)), _whole((READ, GROUP))),),
    "EndTxn": (_case("a transaction", _whole((WRITE, TRANSACTION))),),
    "WriteTxnMarkers": (_case("markers", _each((ALTER, CLUSTER), (CLUSTER_ACTION, CLUSTER))),),
    "TxnOffsetCommit": (
        _case("offsets", _each((WRITE, TRANSACTION)), _each((READ, GROUP)), _topic(READ)),
    ),
    "DescribeAcls": (_case("all", _whole((DESCRIBE, CLUSTER))),),
    "CreateAcls": (_case("an ACL", _each((ALTER, CLUSTER))),),
    "DeleteAcls": (_case("a filter", _each((ALTER, CLUSTER))),),
    "DescribeConfigs": _configs(DESCRIBE_CONFIGS),
    "AlterConfigs": _configs(ALTER_CONFIGS, loggers=False),
    "IncrementalAlterConfigs": _configs(ALTER_CONFIGS),
    "AlterReplicaLogDirs": (_case("a replica", _each((ALTER, CLUSTER))),),
    "DescribeLogDirs": (
        _case("v0", _omitted((DESCRIBE, CLUSTER)), last=2),
        _case("v3", _whole((DESCRIBE, CLUSTER)), first=3),
    ),
    "CreatePartitions": (_case("a topic", _topic(ALTER)),),
    "DeleteGroups": (_case("a group", _each((DELETE, GROUP), named=True)),),
    "ElectLeaders": (
        _case("v0", _each((ALTER, CLUSTER)), last=0),
        _case("v1", _need(Answer.BOTH, (ALTER, CLUSTER)), first=1),
    ),
    # Tokens are shown to and changed by their owners and renewers; see `token_requests`.
    "CreateDelegationToken": _OPEN,
    "RenewDelegationToken": _OPEN,
    "ExpireDelegationToken": _OPEN,
    "DescribeDelegationToken": _OPEN,
    "AlterPartitionReassignments": (_case("a partition", _whole((ALTER, CLUSTER))),),
    "ListPartitionReassignments": (_case("all", _whole((DESCRIBE, CLUSTER))),),
    "OffsetDelete": (_case("offsets", _whole((DELETE, GROUP)), _topic(READ)),),
    "DescribeClientQuotas": (_case("all", _whole((DESCRIBE_CONFIGS, CLUSTER))),),
    "AlterClientQuotas": (_case("an entity", _each((ALTER_CONFIGS, CLUSTER))),),
    "DescribeUserScramCredentials": (_case("a user", _need(Answer.BOTH, (DESCRIBE, CLUSTER))),),
    "AlterUserScramCredentials": (_case("a user", _each((ALTER, CLUSTER))),),
    "DescribeCluster": _OPEN,
    "DescribeProducers": (_case("a topic", _topic(READ)),),
    "DescribeTransactions": (
        _case(
            "a transaction",
            _each((DESCRIBE, TRANSACTION), named=True),
            _omitted((DESCRIBE, TOPIC)),
        ),
    ),
    "ListTransactions": (_case("all", _omitted((DESCRIBE, TRANSACTION))),),
    "ConsumerGroupHeartbeat": (
        _case("a member", _whole((READ, GROUP)), _whole((DESCRIBE, TOPIC))),
    ),
    "ConsumerGroupDescribe": (
        _case("a group", _each((DESCRIBE, GROUP), named=True), _topic(DESCRIBE, named=False)),
    ),
    "ListConfigResources": (_case("all", _whole((DESCRIBE_CONFIGS, CLUSTER))),),
    "DescribeTopicPartitions": (
        _case("by name", _topic(DESCRIBE)),
        _case("all topics", _omitted((DESCRIBE, TOPIC))),
    ),
    # As in Kafka, every client may push its metrics.
    "GetTelemetrySubscriptions": _OPEN,
    "PushTelemetry": _OPEN,
    "DescribeClientTelemetry": (_case("all", _whole((DESCRIBE, CLUSTER))),),
    "LeaderAndIsr": _BROKER,
    "StopReplica": _BROKER,
    "UpdateMetadata": _BROKER,
    "ControlledShutdown": _BROKER,
    "AlterPartition": _BROKER,
    "AllocateProducerIds": _BROKER,
    "BrokerStanding": _BROKER,
}
"""The cases of each API, in the order of their API keys where the broker serves them."""

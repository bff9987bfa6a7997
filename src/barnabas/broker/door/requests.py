"""Which requests the console may send, and what those that go to other brokers need first.

A request for another broker travels on this broker's own connection, where it may do everything. So
all that its handler would ask the authorizer about the user is asked here before, and a request
that is denied in one part is denied as a whole. What a response must leave out is removed here.
The permissions are those of `handlers.authorization`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.schema import Message

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID


class Kind(Enum):
    """What a request does."""

    METADATA = "reads metadata"
    RECORDS = "reads records"
    CHANGE = "changes something"


class Question(NamedTuple):
    """What the authorizer is asked: one of the operations is enough."""

    any_of: tuple[tuple[Operation, ResourceType], ...]
    name: str


DEBUGGING_REPLICA = -2
"""A consumer that also sees markers and batches without records; it needs no other permission."""

Sees = Callable[[Operation, ResourceType, str], bool]
NameOf = Callable[[Uuid], str | None]


class Rule(NamedTuple):
    """One API: its kind, and how a request of it for another broker is authorized."""

    kind: Kind
    questions: Callable[[Any, NameOf], Iterable[Question]] | None = None
    """Returns what is asked; None for an API that this broker always answers itself."""
    narrow: Callable[[Any, Sees], None] | None = None
    """Removes from the response what the user may not see."""


_CODES = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def code_of(question: Question) -> ErrorCode:
    """Return the error code of a denied question."""
    return _CODES[question.any_of[-1][1]]


def _one(operation: Operation, resource: ResourceType, name: str) -> Question:
    return Question(((operation, resource),), name)


def _cluster(operation: Operation) -> Callable[[Any, NameOf], Iterable[Question]]:
    return lambda body, name_of: [_one(operation, CLUSTER, CLUSTER_NAME)]


def _topics(
    operation: Operation, field: str = "topics"
) -> Callable[[Any, NameOf], Iterable[Question]]:
    """Return what asks about each topic in a list of a request."""

    def questions(body: Any, name_of: NameOf) -> Iterable[Question]:
        for topic in getattr(body, field):
            yield _one(operation, TOPIC, _name(topic, name_of))

    return questions


def _name(topic: Any, name_of: NameOf) -> str:
    """Return the name of a topic in a request; of an unknown id, one that no topic has."""
    for field in ("name", "topic", "topic_name"):
        name = getattr(topic, field, None)
        if name:
            return str(name)
    topic_id = getattr(topic, "topic_id", None)
    return (name_of(topic_id) if topic_id is not None else None) or ""


def _create_topics(body: Any, name_of: NameOf) -> Iterable[Question]:
    for topic in body.topics:
        yield Question(
            ((Operation.CREATE, CLUSTER), (Operation.CREATE, TOPIC)),
            topic.name,
        )
        for config in topic.configs:
            if config.name == "barnabas.fork.source" and config.value:
                yield _one(Operation.READ, TOPIC, config.value)


def _delete_topics(body: Any, name_of: NameOf) -> Iterable[Question]:
    for topic in body.topics:
        yield _one(Operation.DELETE, TOPIC, _name(topic, name_of))
    for name in body.topic_names or ():
        yield _one(Operation.DELETE, TOPIC, name)


def _produce(body: Any, name_of: NameOf) -> Iterable[Question]:
    if body.transactional_id is not None:
        yield _one(Operation.WRITE, TRANSACTION, body.transactional_id)
    for topic in body.topic_data:
        yield _one(Operation.WRITE, TOPIC, _name(topic, name_of))


def _offset_fetch(body: Any, name_of: NameOf) -> Iterable[Question]:
    if body.group_id:
        yield _one(Operation.DESCRIBE, GROUP, body.group_id)
    for topic in body.topics or ():
        yield _one(Operation.DESCRIBE, TOPIC, _name(topic, name_of))
    for group in body.groups or ():
        yield _one(Operation.DESCRIBE, GROUP, group.group_id)
        for topic in group.topics or ():
            yield _one(Operation.DESCRIBE, TOPIC, _name(topic, name_of))


def _without_topics(response: Any, sees: Sees) -> None:
    """Leave out committed offsets of topics that the user may not describe."""
    for part in (response, *(getattr(response, "groups", None) or ())):
        if getattr(part, "topics", None):
            part.topics = [
                topic for topic in part.topics if sees(Operation.DESCRIBE, TOPIC, topic.name)
            ]


def _offset_commit(body: Any, name_of: NameOf) -> Iterable[Question]:
    yield _one(Operation.READ, GROUP, body.group_id)
    for topic in body.topics:
        yield _one(Operation.READ, TOPIC, _name(topic, name_of))


def _offset_delete(body: Any, name_of: NameOf) -> Iterable[Question]:
    yield _one(Operation.DELETE, GROUP, body.group_id)
    for topic in body.topics:
        yield _one(Operation.READ, TOPIC, _name(topic, name_of))


def _groups(operation: Operation, field: str) -> Callable[[Any, NameOf], Iterable[Question]]:
    return lambda body, name_of: [_one(operation, GROUP, name) for name in getattr(body, field)]


def _leave_group(body: Any, name_of: NameOf) -> Iterable[Question]:
    yield _one(Operation.READ, GROUP, body.group_id)


def _nothing(body: Any, name_of: NameOf) -> Iterable[Question]:
    return ()


def _only_visible_groups(response: Any, sees: Sees) -> None:
    if not sees(Operation.DESCRIBE, CLUSTER, CLUSTER_NAME):
        response.groups = [
            group for group in response.groups if sees(Operation.DESCRIBE, GROUP, group.group_id)
        ]


def _only_visible_transactions(response: Any, sees: Sees) -> None:
    response.transaction_states = [
        each
        for each in response.transaction_states
        if sees(Operation.DESCRIBE, TRANSACTION, each.transactional_id)
    ]


def _describe_transactions(body: Any, name_of: NameOf) -> Iterable[Question]:
    for name in body.transactional_ids:
        yield _one(Operation.DESCRIBE, TRANSACTION, name)


def _only_visible_topics_of_transactions(response: Any, sees: Sees) -> None:
    for each in response.transaction_states:
        each.topics = [
            topic for topic in each.topics if sees(Operation.DESCRIBE, TOPIC, topic.topic)
        ]


def _only_visible_assignments(response: Any, sees: Sees) -> None:
    """Deny a group of the newer protocol with a topic that the user may not describe."""
    for group in response.groups:
        for member in group.members:
            for assignment in (member.assignment, member.target_assignment):
                for topic in assignment.topic_partitions:
                    if not sees(Operation.DESCRIBE, TOPIC, topic.topic_name):
                        group.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                        group.error_message = "a member has topics that are not visible"
                        group.members = []
                        return


def _init_producer_id(body: Any, name_of: NameOf) -> Iterable[Question]:
    if body.transactional_id is None:
        yield _one(Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)
    else:
        yield _one(Operation.WRITE, TRANSACTION, body.transactional_id)


_CONFIG_TYPES = {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 16: CLUSTER, 32: GROUP}
"""The resource type of each config resource type."""


def _configs(operation: Operation) -> Callable[[Any, NameOf], Iterable[Question]]:
    def questions(body: Any, name_of: NameOf) -> Iterable[Question]:
        for resource in body.resources:
            kind = _CONFIG_TYPES.get(resource.resource_type, CLUSTER)
            name = CLUSTER_NAME if kind is CLUSTER else resource.resource_name
            yield _one(operation, kind, name)

    return questions


_READ, _CHANGE = Kind.METADATA, Kind.CHANGE

RULES: dict[str, Rule] = {
    # Answered by any broker, so by this one.
    "Metadata": Rule(_READ),
    "ApiVersions": Rule(_READ),
    "DescribeCluster": Rule(_READ),
    "DescribeTopicPartitions": Rule(_READ),
    "FindCoordinator": Rule(_READ),
    "DescribeAcls": Rule(_READ),
    "CreateAcls": Rule(_CHANGE),
    "DeleteAcls": Rule(_CHANGE),
    "AlterClientQuotas": Rule(_CHANGE),
    "DescribeUserScramCredentials": Rule(_READ),
    "ListConfigResources": Rule(_READ),
    # Of partitions: their leaders.
    "ListOffsets": Rule(_READ, _topics(Operation.DESCRIBE)),
    "OffsetForLeaderEpoch": Rule(_READ, _topics(Operation.DESCRIBE)),
    "Fetch": Rule(Kind.RECORDS, _topics(Operation.READ)),
    "Produce": Rule(_CHANGE, _produce),
    "DeleteRecords": Rule(_CHANGE, _topics(Operation.DELETE)),
    "DescribeProducers": Rule(_READ, _topics(Operation.READ)),
    "WriteTxnMarkers": Rule(_CHANGE, _cluster(Operation.ALTER)),
    # Of the controller.
    "CreateTopics": Rule(_CHANGE, _create_topics),
    "DeleteTopics": Rule(_CHANGE, _delete_topics),
    "CreatePartitions": Rule(_CHANGE, _topics(Operation.ALTER)),
    "ElectLeaders": Rule(_CHANGE, _cluster(Operation.ALTER)),
    "AlterPartitionReassignments": Rule(_CHANGE, _cluster(Operation.ALTER)),
    "ListPartitionReassignments": Rule(_READ, _cluster(Operation.DESCRIBE)),
    "AlterUserScramCredentials": Rule(_CHANGE, _cluster(Operation.ALTER)),
    # Of coordinators.
    "ListGroups": Rule(_READ, _nothing, _only_visible_groups),
    "DescribeGroups": Rule(_READ, _groups(Operation.DESCRIBE, "groups")),
    "ConsumerGroupDescribe": Rule(
        _READ, _groups(Operation.DESCRIBE, "group_ids"), _only_visible_assignments
    ),
    "DeleteGroups": Rule(_CHANGE, _groups(Operation.DELETE, "groups_names")),
    "LeaveGroup": Rule(_CHANGE, _leave_group),
    "OffsetFetch": Rule(_READ, _offset_fetch, _without_topics),
    "OffsetCommit": Rule(_CHANGE, _offset_commit),
    "OffsetDelete": Rule(_CHANGE, _offset_delete),
    "ListTransactions": Rule(_READ, _nothing, _only_visible_transactions),
    "DescribeTransactions": Rule(
        _READ, _describe_transactions, _only_visible_topics_of_transactions
    ),
    "InitProducerId": Rule(_CHANGE, _init_producer_id),
    # Of the broker that is asked.
    "DescribeClientQuotas": Rule(_READ, _cluster(Operation.DESCRIBE_CONFIGS)),
    "DescribeClientTelemetry": Rule(_READ, _cluster(Operation.DESCRIBE)),
    "DescribeConfigs": Rule(_READ, _configs(Operation.DESCRIBE_CONFIGS)),
    "IncrementalAlterConfigs": Rule(_CHANGE, _configs(Operation.ALTER_CONFIGS)),
    "DescribeLogDirs": Rule(_READ, _cluster(Operation.DESCRIBE)),
    "AlterReplicaLogDirs": Rule(_CHANGE, _cluster(Operation.ALTER)),
}
"""The APIs that the console may use; every other one is rejected, whatever the mode."""


def without_side_effects(request: Message) -> Message:
    """Return a request that creates no topic and takes no part in replication by itself."""
    if hasattr(request, "allow_auto_topic_creation"):
        request.allow_auto_topic_creation = False
    if hasattr(request, "replica_id") and request.replica_id != DEBUGGING_REPLICA:
        request.replica_id = -1
    if hasattr(request, "replica_state"):
        request.replica_state = None
    return request

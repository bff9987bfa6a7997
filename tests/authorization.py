"""The acceptance test of authorization: each row of the broker's table, as requests and answers.

`Rehearsal` runs one case of an API against a cluster, ours or Apache Kafka's: with
no ACL at all, with exactly the needed ones (literal, wildcard, prefix), with each of them missing,
with a DENY over each, from another host, and as a super user. Whatever is denied must answer as the
table says, tell no more, and leave everything as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from tests.unit.broker.requests import sample_request
from tests.unit.broker.serving import batch_of

from barnabas.broker.handlers.authorization import AUTHORIZATION, Answer, Case, Need
from barnabas.broker.handlers.authorization import Permission as Needed
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.security.acl import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_topics,
    delete_acls,
    delete_groups,
    delete_topics,
    describe_acls,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from barnabas.wire.schema import Message

CLIENT = "User:alice"
NOBODY = "User:nobody"
"""Whom the ACLs concern that requests of the table create or delete."""

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
TOPIC_CONFIG, BROKER_CONFIG, LOGGER_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG = 2, 4, 8, 16, 32

DENIED_CODES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}

_IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


class Cluster(Protocol):
    """One broker with an authorizer, as two users reach it."""

    broker_id: int

    def versions(self, api: str) -> range:
        """Return the versions that it serves, none if it does not serve the API."""

    def ask(self, request: Message, version: int, *, admin: bool = False) -> Any:
        """Send a request as the client, or as a super user, and return the response."""

    def set_acls(self, bindings: list[Binding]) -> None:
        """Replace all ACLs; they count when this returns."""


_numbers = itertools.count()


class World:
    """What requests are about: a topic, a group, a transaction; each is made when it is named."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        number = next(_numbers)
        self.cluster = cluster
        self.topic_name = f"{kind}.topic-{number}"
        self.group_name = f"{kind}.group-{number}"
        self.transactional_id = f"{kind}.transaction-{number}"
        self._topic_id: Uuid | None = None
        self._has_group = self._has_members = False
        self._producer: tuple[int, int] | None = None

    def name_of(self, resource: ResourceType) -> str:
        names = {
            TOPIC: self.topic_name,
            GROUP: self.group_name,
            TRANSACTION: self.transactional_id,
            CLUSTER: CLUSTER_NAME,
        }
        return names[resource]

    def admin(self, request: Message, version: int) -> Any:
        return self.cluster.ask(request, version, admin=True)

    @property
    def topic_id(self) -> Uuid:
        """The id of the topic, which is made with one record in it."""
        if self._topic_id is None:
            # With its own time, the record would be too old to be retained.
            stamped = create_topics.CreatableTopicConfig(
                name="message.timestamp.type", value="LogAppendTime"
            )
            new = create_topics.CreatableTopic(
                name=self.topic_name, num_partitions=2, replication_factor=1, configs=[stamped]
            )
            request = create_topics.CreateTopicsRequest(topics=[new], timeout_ms=30_000)
            (created,) = self.admin(request, 7).topics
            assert created.error_code == 0, created
            self._topic_id = created.topic_id
            self._append()
        return self._topic_id

    def _append(self) -> None:
        data = produce.PartitionProduceData(index=0, records=batch_of([b"value"]))
        topic = produce.TopicProduceData(name=self.topic_name, partition_data=[data])
        request = produce.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])
        self._until(lambda: self.admin(request, 9).responses[0].partition_responses[0].error_code)

    @property
    def topic(self) -> str:
        assert self.topic_id
        return self.topic_name

    def _until(self, error_code: Callable[[], int]) -> None:
        """Try until it works: leaders and coordinators take a moment to be known."""
        for _ in range(1000):
            code = error_code()
            if code == 0:
                return
            assert ErrorCode.of(code).retriable, ErrorCode.of(code)
        raise AssertionError("the cluster does not settle")

    def _find(self, key: str, kind: int) -> None:
        request = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)
        self._until(lambda: self.admin(request, 3).error_code)

    @property
    def group(self) -> str:
        """A group without members that has committed an offset of the topic."""
        if not self._has_group:
            self._find(self.group_name, 0)
            request = commit(self.group_name, self.topic, None)
            self._until(lambda: self.admin(request, 7).topics[0].partitions[0].error_code)
            self._has_group = True
        return self.group_name

    @property
    def consumer_group(self) -> str:
        """A group of the new protocol with one member, which reads the topic."""
        if not self._has_members:
            self._find(self.group_name, 0)
            request = member(self.group_name, self.topic)
            self._until(lambda: self.admin(request, 0).error_code)
            self._has_members = True
        return self.group_name

    @property
    def producer(self) -> tuple[int, int]:
        """The id and epoch of a producer whose open transaction has the topic."""
        if self._producer is None:
            self._find(self.transactional_id, 1)
            init = init_producer_id.InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=60_000
            )
            self._until(lambda: self.admin(init, 4).error_code)
            given = self.admin(init, 4)
            self._producer = given.producer_id, given.producer_epoch
            add = self.add_partitions(3)
            self._until(
                lambda: (
                    self.admin(add, 3)
                    .results_by_topic_v3_and_below[0]
                    .results_by_partition[0]
                    .partition_error_code
                )
            )
        return self._producer

    def add_partitions(self, version: int) -> Message:
        assert self._producer is not None
        producer_id, epoch = self._producer
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=self.topic, partitions=[0])
        if version < 4:
            return add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[topic],
            )
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id=self.transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    topics=[topic],
                )
            ]
        )

    def state(self) -> list[object]:
        """Return what a request could have changed, as a super user sees it."""
        ask = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=self.topic_name)],
            allow_auto_topic_creation=False,
        )
        (topic,) = self.admin(ask, 9).topics
        found: list[object] = [topic.error_code, len(topic.partitions)]
        nobody = describe_acls.DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=NOBODY,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        found.append(self.admin(nobody, 1).resources)
        if self._topic_id is not None:
            found += self._topic_state()
        if self._has_group or self._has_members:
            found += self._group_state()
        if self._producer is not None:
            asked = describe_transactions.DescribeTransactionsRequest(
                transactional_ids=[self.transactional_id]
            )
            (state,) = self.admin(asked, 0).transaction_states
            found += [state.transaction_state, state.producer_epoch, state.topics]
        return found

    def _topic_state(self) -> Iterator[object]:
        for timestamp in (-2, -1):
            wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            topic = list_offsets.ListOffsetsTopic(name=self.topic_name, partitions=[wanted])
            asked = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])
            yield self.admin(asked, 2).topics[0].partitions[0].offset
        resource = describe_configs.DescribeConfigsResource(
            resource_type=TOPIC_CONFIG,
            resource_name=self.topic_name,
            configuration_keys=["retention.ms"],
        )
        request = describe_configs.DescribeConfigsRequest(resources=[resource])
        yield self.admin(request, 1).results[0].configs[0].value

    def _group_state(self) -> Iterator[object]:
        asked = offset_fetch.OffsetFetchRequest(group_id=self.group_name, topics=None)
        yield self.admin(asked, 7).topics
        described = describe_groups.DescribeGroupsRequest(groups=[self.group_name])
        (group,) = self.admin(described, 5).groups
        yield [group.group_state, [each.member_id for each in group.members]]


# requests


def commit(group: str, topic: str, topic_id: Uuid | None) -> Message:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    named = offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    if topic_id is not None:
        named = offset_commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])
    return offset_commit.OffsetCommitRequest(group_id=group, topics=[named])


def member(group: str, topic: str) -> Message:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="0123456789012345678901",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


def _configs(kind: int, resource_name: Callable[[World], str]) -> dict[str, Any]:
    def describe(world: World, version: int) -> Message:
        resource = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=resource_name(world), configuration_keys=None
        )
        return describe_configs.DescribeConfigsRequest(resources=[resource])

    value = {
        TOPIC_CONFIG: ("retention.ms", "5000"),
        BROKER_CONFIG: ("log.cleaner.threads", "1"),
        LOGGER_CONFIG: ("kafka.request.logger", "WARN"),
        CLIENT_METRICS_CONFIG: ("interval.ms", "5000"),
    }
    name, text = value.get(kind, ("consumer.session.timeout.ms", "45000"))

    def alter(world: World, version: int) -> Message:
        resource = alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=resource_name(world),
            configs=[alter_configs.AlterableConfig(name=name, value=text)],
        )
        return alter_configs.AlterConfigsRequest(resources=[resource])

    def incremental(world: World, version: int) -> Message:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=resource_name(world),
            configs=[incremental_alter_configs.AlterableConfig(name=name, value=text)],
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])

    return {
        "DescribeConfigs": describe,
        "AlterConfigs": alter,
        "IncrementalAlterConfigs": incremental,
    }


_CONFIGS = {
    "a topic": _configs(TOPIC_CONFIG, lambda world: world.topic),
    "a broker": _configs(BROKER_CONFIG, lambda world: str(world.cluster.broker_id)),
    "a group": _configs(GROUP_CONFIG, lambda world: world.group_name),
    "a broker's loggers": _configs(LOGGER_CONFIG, lambda world: str(world.cluster.broker_id)),
    "client metrics": _configs(CLIENT_METRICS_CONFIG, lambda world: world.topic_name),
}


def _sample(api: str) -> Callable[[World, int], Message]:
    return lambda world, version: sample_request(api, version, world.topic, world.topic_id)


def _transactional(world: World, version: int) -> Message:
    producer_id, epoch = world.producer
    batch = batch_of(
        [b"v"], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    data = produce.PartitionProduceData(index=0, records=batch)
    topic = produce.TopicProduceData(
        name=world.topic, topic_id=world.topic_id, partition_data=[data]
    )
    return produce.ProduceRequest(
        transactional_id=world.transactional_id, acks=1, timeout_ms=30_000, topic_data=[topic]
    )


def _follower(world: World, version: int) -> Message:
    request: Any = sample_request("Fetch", version, world.topic, world.topic_id)
    request.rack_id = ""
    if version < 15:
        request.replica_id = 77
    else:
        request.replica_state = fetch.ReplicaState(replica_id=77)
    return request


def _metadata(case: str) -> Callable[[World, int], Message]:
    def build(world: World, version: int) -> Message:
        if case == "all topics":
            assert world.topic
            return metadata.MetadataRequest(topics=[] if version == 0 else None)
        if case == "by id":
            return metadata.MetadataRequest(
                topics=[metadata.MetadataRequestTopic(name=None, topic_id=world.topic_id)]
            )
        name = world.topic if case == "by name" else world.topic_name
        return metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )

    return build


def _offset_fetch(everything: bool) -> Callable[[World, int], Message]:
    def build(world: World, version: int) -> Message:
        if version < 8:
            named = offset_fetch.OffsetFetchRequestTopic(name=world.topic, partition_indexes=[0])
            return offset_fetch.OffsetFetchRequest(
                group_id=world.group, topics=None if everything else [named]
            )
        topic = offset_fetch.OffsetFetchRequestTopics(name=world.topic, partition_indexes=[0])
        if version >= 10:
            topic = offset_fetch.OffsetFetchRequestTopics(
                topic_id=world.topic_id, partition_indexes=[0]
            )
        group = offset_fetch.OffsetFetchRequestGroup(
            group_id=world.group, topics=None if everything else [topic]
        )
        return offset_fetch.OffsetFetchRequest(groups=[group])

    return build


def _find_coordinator(kind: int, several: bool) -> Callable[[World, int], Message]:
    def build(world: World, version: int) -> Message:
        key = world.transactional_id if kind else world.group_name
        if several:
            return find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        return find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)

    return build


def _join(world: World, version: int) -> Message:
    assert world.group
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    return join_group.JoinGroupRequest(
        group_id=world.group_name,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


def _leave(world: World, version: int) -> Message:
    if version < 3:
        return leave_group.LeaveGroupRequest(group_id=world.group, member_id="m")
    identity = leave_group.MemberIdentity(member_id="m")
    return leave_group.LeaveGroupRequest(group_id=world.group, members=[identity])


def _sync(world: World, version: int) -> Message:
    request = sync_group.SyncGroupRequest(group_id=world.group, generation_id=1, member_id="m")
    if version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    return request


def _create_topics(world: World, version: int) -> Message:
    new = create_topics.CreatableTopic(
        name=world.topic_name, num_partitions=1, replication_factor=1
    )
    return create_topics.CreateTopicsRequest(topics=[new], timeout_ms=30_000)


def _delete_topics(by_id: bool) -> Callable[[World, int], Message]:
    def build(world: World, version: int) -> Message:
        if version < 6:
            return delete_topics.DeleteTopicsRequest(topic_names=[world.topic], timeout_ms=30_000)
        state = delete_topics.DeleteTopicState(name=world.topic)
        if by_id:
            state = delete_topics.DeleteTopicState(name=None, topic_id=world.topic_id)
        return delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=30_000)

    return build


def _txn_offset_commit(world: World, version: int) -> Message:
    producer_id, epoch = world.producer
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1
    )
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=world.topic, partitions=[partition])
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=world.transactional_id,
        group_id=world.group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[topic],
    )


def _add_partitions(world: World, version: int) -> Message:
    assert world.producer
    return world.add_partitions(version)


def _write_markers(world: World, version: int) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(name=world.topic, partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=4711, producer_epoch=0, transaction_result=False, topics=[topic]
    )
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def _create_acls(world: World, version: int) -> Message:
    creation = create_acls.AclCreation(
        resource_type=TOPIC,
        resource_name=world.topic_name,
        principal=NOBODY,
        host="*",
        operation=Operation.READ,
        permission_type=Permission.ALLOW,
    )
    return create_acls.CreateAclsRequest(creations=[creation])


def _delete_acls(world: World, version: int) -> Message:
    wanted = delete_acls.DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=None,
        principal_filter=NOBODY,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return delete_acls.DeleteAclsRequest(filters=[wanted])


def _describe_acls(world: World, version: int) -> Message:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _alter_replica_log_dirs(world: World, version: int) -> Message:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=world.topic, partitions=[0])
    directory = alter_replica_log_dirs.AlterReplicaLogDir(path="/nowhere", topics=[topic])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory])


def _offset_delete(world: World, version: int) -> Message:
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topic = offset_delete.OffsetDeleteRequestTopic(name=world.topic, partitions=[partition])
    return offset_delete.OffsetDeleteRequest(group_id=world.group, topics=[topic])


def _all_partitions(world: World, version: int) -> Message:
    assert world.topic
    return describe_topic_partitions.DescribeTopicPartitionsRequest()


def _named_partitions(world: World, version: int) -> Message:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=world.topic)]
    )


def _list_groups(world: World, version: int) -> Message:
    assert world.group
    return list_groups.ListGroupsRequest()


def _describe_transaction(world: World, version: int) -> Message:
    assert world.producer
    return describe_transactions.DescribeTransactionsRequest(
        transactional_ids=[world.transactional_id]
    )


def _list_transactions(world: World, version: int) -> Message:
    assert world.producer
    return list_transactions.ListTransactionsRequest()


def _add_offsets(world: World, version: int) -> Message:
    producer_id, epoch = world.producer
    return add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=world.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=world.group,
    )


def _end(world: World, version: int) -> Message:
    producer_id, epoch = world.producer
    return end_txn.EndTxnRequest(
        transactional_id=world.transactional_id, producer_id=producer_id, producer_epoch=epoch
    )


def _init(world: World, version: int) -> Message:
    assert world.producer
    return init_producer_id.InitProducerIdRequest(
        transactional_id=world.transactional_id, transaction_timeout_ms=60_000
    )


def _init_without(world: World, version: int) -> Message:
    assert world.topic
    return init_producer_id.InitProducerIdRequest(transactional_id=None)


def _alter_quotas(world: World, version: int) -> Message:
    entity = alter_client_quotas.EntityData(entity_type="user", entity_name="nobody")
    limit = alter_client_quotas.OpData(key="producer_byte_rate", value=1024.0)
    entry = alter_client_quotas.EntryData(entity=[entity], ops=[limit])
    return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _alter_scram(world: World, version: int) -> Message:
    """Delete what does not exist, which changes nothing even where it is allowed."""
    deletion = alter_user_scram_credentials.ScramCredentialDeletion(name="nobody", mechanism=1)
    return alter_user_scram_credentials.AlterUserScramCredentialsRequest(deletions=[deletion])


def _describe_scram(world: World, version: int) -> Message:
    user = describe_user_scram_credentials.UserName(name="nobody")
    return describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=[user])


def _default(api: str) -> Callable[[World, int], Message]:
    return lambda world, version: API_BY_NAME[api].request()


REQUESTS: dict[tuple[str, str], Callable[[World, int], Message]] = {
    ("Produce", "by name"): _sample("Produce"),
    ("Produce", "by id"): _sample("Produce"),
    ("Produce", "a transaction"): _transactional,
    ("Fetch", "by name"): _sample("Fetch"),
    ("Fetch", "by id"): _sample("Fetch"),
    ("Fetch", "a follower"): _follower,
    ("ListOffsets", "a topic"): _sample("ListOffsets"),
    **{("Metadata", case.name): _metadata(case.name) for case in AUTHORIZATION["Metadata"]},
    ("OffsetCommit", "by name"): lambda world, _: commit(world.group, world.topic, None),
    ("OffsetCommit", "by id"): lambda world, _: commit(world.group, world.topic, world.topic_id),
    **{
        ("OffsetFetch", case.name): _offset_fetch(case.name.startswith("all"))
        for case in AUTHORIZATION["OffsetFetch"]
    },
    ("FindCoordinator", "a group"): _find_coordinator(0, False),
    ("FindCoordinator", "groups"): _find_coordinator(0, True),
    ("FindCoordinator", "a transaction"): _find_coordinator(1, False),
    ("FindCoordinator", "transactions"): _find_coordinator(1, True),
    ("JoinGroup", "a group"): _join,
    ("Heartbeat", "a group"): lambda world, _: heartbeat.HeartbeatRequest(
        group_id=world.group, generation_id=1, member_id="m"
    ),
    ("LeaveGroup", "a group"): _leave,
    ("SyncGroup", "a group"): _sync,
    ("DescribeGroups", "a group"): lambda world, _: describe_groups.DescribeGroupsRequest(
        groups=[world.group]
    ),
    ("ListGroups", "all groups"): _list_groups,
    ("CreateTopics", "a topic"): _create_topics,
    ("DeleteTopics", "by name"): _delete_topics(False),
    ("DeleteTopics", "by id"): _delete_topics(True),
    ("DeleteRecords", "a topic"): _sample("DeleteRecords"),
    ("InitProducerId", "a transaction"): _init,
    ("InitProducerId", "no transaction"): _init_without,
    ("OffsetForLeaderEpoch", "a topic"): _sample("OffsetForLeaderEpoch"),
    ("AddPartitionsToTxn", "a client"): _add_partitions,
    ("AddPartitionsToTxn", "a broker"): _add_partitions,
    ("AddOffsetsToTxn", "a group"): _add_offsets,
    ("EndTxn", "a transaction"): _end,
    ("WriteTxnMarkers", "markers"): _write_markers,
    ("TxnOffsetCommit", "offsets"): _txn_offset_commit,
    ("DescribeAcls", "all"): _describe_acls,
    ("CreateAcls", "an ACL"): _create_acls,
    ("DeleteAcls", "a filter"): _delete_acls,
    **{
        (api, case): build
        for case, by_api in _CONFIGS.items()
        for api, build in by_api.items()
        if (api, case) != ("AlterConfigs", "a broker's loggers")  # only incrementally
    },
    ("AlterReplicaLogDirs", "a replica"): _alter_replica_log_dirs,
    ("DescribeLogDirs", "v0"): _sample("DescribeLogDirs"),
    ("DescribeLogDirs", "v3"): _sample("DescribeLogDirs"),
    ("CreatePartitions", "a topic"): _sample("CreatePartitions"),
    ("DeleteGroups", "a group"): lambda world, _: delete_groups.DeleteGroupsRequest(
        groups_names=[world.group]
    ),
    ("ElectLeaders", "v0"): _sample("ElectLeaders"),
    ("ElectLeaders", "v1"): _sample("ElectLeaders"),
    ("AlterPartitionReassignments", "a partition"): _default("AlterPartitionReassignments"),
    ("ListPartitionReassignments", "all"): _default("ListPartitionReassignments"),
    ("OffsetDelete", "offsets"): _offset_delete,
    ("DescribeClientQuotas", "all"): _default("DescribeClientQuotas"),
    ("AlterClientQuotas", "an entity"): _alter_quotas,
    ("DescribeUserScramCredentials", "a user"): _describe_scram,
    ("AlterUserScramCredentials", "a user"): _alter_scram,
    ("DescribeProducers", "a topic"): _sample("DescribeProducers"),
    ("DescribeTransactions", "a transaction"): _describe_transaction,
    ("ListTransactions", "all"): _list_transactions,
    ("ConsumerGroupHeartbeat", "a member"): lambda world, _: member(world.group_name, world.topic),
    ("ConsumerGroupDescribe", "a group"): lambda world, _: (
        consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[world.consumer_group])
    ),
    ("ListConfigResources", "all"): _default("ListConfigResources"),
    ("DescribeTopicPartitions", "by name"): _named_partitions,
    ("DescribeTopicPartitions", "all topics"): _all_partitions,
    ("LeaderAndIsr", "a broker"): _default("LeaderAndIsr"),
    ("StopReplica", "a broker"): _default("StopReplica"),
    ("UpdateMetadata", "a broker"): _default("UpdateMetadata"),
    ("ControlledShutdown", "a broker"): lambda *_: controlled_shutdown.ControlledShutdownRequest(
        broker_id=77
    ),
    ("AlterPartition", "a broker"): _default("AlterPartition"),
    ("AllocateProducerIds", "a broker"): lambda *_: (
        allocate_producer_ids.AllocateProducerIdsRequest(broker_id=77)
    ),
    ("BrokerStanding", "a broker"): _default("BrokerStanding"),
    ("DescribeClientTelemetry", "all"): _default("DescribeClientTelemetry"),
}
"""How each case of the table is requested."""

CHANGING = {
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "ConsumerGroupHeartbeat",
    "CreatePartitions",
    "CreateTopics",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteTopics",
    "EndTxn",
    "InitProducerId",
    "JoinGroup",
    "OffsetDelete",
    "Produce",
    "TxnOffsetCommit",
    "WriteTxnMarkers",
}
"""APIs whose request, once allowed, needs a new topic, group or transaction to be repeated."""


def cases() -> list[tuple[str, Case]]:
    """Return all cases of the table."""
    return [(api, case) for api, listed in AUTHORIZATION.items() for case in listed]


# answers


def error_codes(message: Any, *, nested: bool = True) -> list[int]:
    """Return the error codes in a message; not that of a topic's configs, which is no refusal."""
    found: list[int] = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name in ("error_code", "partition_error_code"):
            found.append(value)
        elif nested and field.struct is not None and value is not None:
            for each in value if field.is_array else [value]:
                found += error_codes(each)
    return found


def strings(message: Any) -> set[str]:
    """Return every string in a message, except those that are explanations."""
    found: set[str] = set()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_message") or value is None:
            continue
        if field.struct is not None:
            for each in value if field.is_array else [value]:
                found |= strings(each)
        elif isinstance(value, str):
            found.add(value)
        elif field.is_array:
            found |= {each for each in value if isinstance(each, str)}
    return found


class Rehearsal:
    """One case of an API against a cluster."""

    def __init__(self, cluster: Cluster, api: str, case: Case) -> None:
        self._cluster = cluster
        self._api = api
        self._case = case
        self._build = REQUESTS[api, case.name]
        self._changes = api in CHANGING or case.name == "a missing topic"
        self._world = self._new_world()
        self._version = 0

    def _new_world(self) -> World:
        return World(self._cluster, self._api.lower())

    def run(self, version: int) -> None:
        """Check everything that the table promises, in one version."""
        self._version = version
        self._cluster.set_acls([])
        request = self._request()
        before = self._settled_state()
        for need, bindings, why in self._refusals():
            self._cluster.set_acls(bindings)
            self._check_denied(need, self._ask(request), why)
        self._check_unchanged(before)
        for bindings, why in self._permissions():
            request = self._request()
            self._cluster.set_acls(self._moved(bindings))
            self._check_allowed(self._ask(request), why)
        self._cluster.set_acls([])
        self._check_allowed(self._ask(self._request(), admin=True), "a super user")

    def _settled_state(self) -> list[object]:
        """Return the state once it stays as it is: what was just made may still be spreading."""
        before = self._world.state()
        for _ in range(100):
            again = self._world.state()
            if again == before:
                return before
            before = again
        raise AssertionError(f"it keeps changing: {before}")

    def _check_unchanged(self, before: list[object]) -> None:
        """Hold that nothing was changed; a coordinator may be busy for a moment, and say so."""
        for _ in range(100):
            after = self._world.state()
            if after == before:
                return
        raise AssertionError(f"a denied request has changed something: {before} -> {after}")

    def _request(self) -> Message:
        """Return the request; if it changes what it is about, about something new."""
        if self._changes:
            self._world = self._new_world()
        return self._build(self._world, self._version)

    def _ask(self, request: Message, *, admin: bool = False) -> Any:
        return self._cluster.ask(request, self._version, admin=admin)

    # which ACLs

    def _refusals(self) -> Iterator[tuple[Need, list[Binding], str]]:
        """Yield ACLs that are not enough, and the first need that they do not fulfil."""
        needs = self._case.needs
        if not needs:
            return
        first, *_ = needs
        yield first, [], "no ACL"
        exact = [self._allow(need.any_of[-1]) for need in needs]
        others = [self._allow(need.any_of[-1], principal="User:bob") for need in needs]
        yield first, others, "ACLs of another"
        elsewhere = [self._allow(need.any_of[-1], host="192.0.2.1") for need in needs]
        yield first, elsewhere, "from another host"
        for position, need in enumerate(needs):
            if not self._is_implied(position):
                missing = [each for number, each in enumerate(exact) if number != position]
                yield need, missing, f"without {need.any_of}"
            denied = [self._deny(permission) for permission in need.any_of]
            yield need, [*exact, *denied], f"denied {need.any_of}"
            wide = [self._allow(each.any_of[-1], everything=True) for each in needs]
            if all(each.resource is not CLUSTER for each in need.any_of):
                denied = [self._deny(each, prefix=True) for each in need.any_of]
                yield need, [*wide, *denied], f"allowed all, denied {need.any_of} by prefix"

    def _permissions(self) -> Iterator[tuple[list[Binding], str]]:
        """Yield ACLs that are enough."""
        for choice in itertools.product(*(need.any_of for need in self._case.needs)):
            yield [self._allow(each) for each in choice], f"exactly {choice}"
        last = [need.any_of[-1] for need in self._case.needs]
        yield [self._allow(each, everything=True) for each in last], "wildcard names"
        yield [self._allow(each, prefix=True) for each in last], "prefixes"
        yield [self._allow(each, principal="User:*") for each in last], "everyone"
        yield (
            [self._allow(each._replace(operation=Operation.ALL)) for each in last],
            "all operations",
        )

    def _is_implied(self, position: int) -> bool:
        """Return whether other needs of the case grant what this one asks for."""
        wanted = self._case.needs[position].any_of[-1]
        return any(
            need.any_of[-1].resource is wanted.resource
            and (
                need.any_of[-1].operation is wanted.operation
                or need.any_of[-1].operation in _IMPLYING.get(wanted.operation, ())
            )
            for number, need in enumerate(self._case.needs)
            if number != position
        )

    def _allow(
        self,
        needed: Needed,
        *,
        principal: str = CLIENT,
        host: str = "*",
        everything: bool = False,
        prefix: bool = False,
    ) -> Binding:
        pattern = self._pattern(needed.resource, everything=everything, prefix=prefix)
        return Binding(pattern, Entry(principal, host, needed.operation, Permission.ALLOW))

    def _deny(self, needed: Needed, *, prefix: bool = False) -> Binding:
        pattern = self._pattern(needed.resource, prefix=prefix)
        return Binding(pattern, Entry(CLIENT, "*", needed.operation, Permission.DENY))

    def _pattern(
        self, resource: ResourceType, *, everything: bool = False, prefix: bool = False
    ) -> Pattern:
        name = self._world.name_of(resource)
        if resource is CLUSTER:
            return Pattern(resource, name)
        if everything:
            return Pattern(resource, "*")
        if prefix:
            return Pattern(resource, name[:-2], PatternType.PREFIXED)
        return Pattern(resource, name)

    def _moved(self, bindings: Iterable[Binding]) -> list[Binding]:
        """Return the ACLs with the names of the present world."""
        moved = []
        for pattern, entry in bindings:
            literal = pattern.pattern_type is PatternType.LITERAL
            moved.append(
                Binding(
                    self._pattern(
                        pattern.resource_type, everything=pattern.name == "*", prefix=not literal
                    ),
                    entry,
                )
            )
        return moved

    # which answers

    def _check_denied(self, need: Need, response: Any, why: str) -> None:
        whole, codes = set(error_codes(response, nested=False)), error_codes(response)
        told = (self._api, self._version, why, response)
        if need.answer is Answer.OMITTED:
            assert not any(codes), told
        else:
            assert set(codes) - {0} == {need.code}, told
            if need.answer is Answer.EACH:
                assert whole <= {0}, told
            else:
                assert whole == {need.code}, told
                nested = codes[1:]
                assert need.answer is Answer.WHOLE or need.code in nested, told
        names = {self._world.name_of(each.resource) for each in need.any_of} - {CLUSTER_NAME}
        if need.named is False:
            assert not names & strings(response), told
        elif need.named:
            assert names & strings(response), told

    def _check_allowed(self, response: Any, why: str) -> None:
        told = (self._api, self._version, why, response)
        assert not DENIED_CODES & set(error_codes(response)), told
        for need in self._case.needs:
            if need.answer is Answer.OMITTED and need.any_of[-1].resource is not CLUSTER:
                assert self._world.name_of(need.any_of[-1].resource) in strings(response), told

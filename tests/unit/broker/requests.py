"""A sensible request of every served API, in any version, about one topic."""

from __future__ import annotations

from tests.unit.broker.serving import TIMESTAMP, batch_of

from barnabas.model.ids import Uuid
from barnabas.records.batch import Record
from barnabas.records.legacy import encode_message
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages import (
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_for_leader_epoch,
    produce,
    sasl_handshake,
)
from barnabas.wire.schema import Message

TOPIC, BROKER = 2, 4


def has_sample(name: str) -> bool:
    """Tell whether there is a request of an API that succeeds; else there is one of defaults."""
    return name in _REQUESTS


def sample_request(name: str, version: int, topic: str, topic_id: Uuid) -> Message:
    """Return a request of an API that a broker with this topic (two partitions) can fulfil."""
    if name not in _REQUESTS:
        return API_BY_NAME[name].request()
    request = _REQUESTS[name](version, topic, topic_id)
    assert isinstance(request, API_BY_NAME[name].request)
    return request


def records_for(version: int) -> bytes:
    """Return what a produce request of a version carries: an old message, or a batch."""
    if version < 3:
        magic = 0 if version < 2 else 1
        record = Record(0, TIMESTAMP if magic else -1, b"key", b"value", ())
        return encode_message(record, magic)
    return batch_of([b"value"])


def _produce(version: int, topic: str, topic_id: Uuid) -> Message:
    data = produce.PartitionProduceData(index=0, records=records_for(version))
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=60_000,
        topic_data=[produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


def _fetch(version: int, topic: str, topic_id: Uuid) -> Message:
    wanted = fetch.FetchPartition(partition=0, partition_max_bytes=1000)
    return fetch.FetchRequest(
        max_bytes=1000,
        session_epoch=0,
        topics=[fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
        rack_id="r",
    )


def _list_offsets(version: int, topic: str, topic_id: Uuid) -> Message:
    wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )


def _metadata(version: int, topic: str, topic_id: Uuid) -> Message:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=topic)],
        include_cluster_authorized_operations=8 <= version <= 10,
        include_topic_authorized_operations=version >= 8,
    )


def _create_topics(version: int, topic: str, topic_id: Uuid) -> Message:
    new = create_topics.CreatableTopic(
        name=f"{topic}-more",
        num_partitions=1,
        replication_factor=1,
        configs=[create_topics.CreatableTopicConfig(name="retention.ms", value="1000")],
    )
    return create_topics.CreateTopicsRequest(topics=[new])


def _delete_topics(version: int, topic: str, topic_id: Uuid) -> Message:
    if version >= 6:
        return delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(topic_id=topic_id)], timeout_ms=60_000
        )
    return delete_topics.DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000)


def _delete_records(version: int, topic: str, topic_id: Uuid) -> Message:
    wanted = delete_records.DeleteRecordsPartition(partition_index=1, offset=-1)
    return delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=[wanted])]
    )


def _offset_for_leader_epoch(version: int, topic: str, topic_id: Uuid) -> Message:
    wanted = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        topics=[offset_for_leader_epoch.OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )


def _describe_configs(version: int, topic: str, topic_id: Uuid) -> Message:
    return describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=TOPIC, resource_name=topic, configuration_keys=None
            ),
            describe_configs.DescribeConfigsResource(
                resource_type=BROKER, resource_name="0", configuration_keys=None
            ),
        ],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    )


def _alter_configs(version: int, topic: str, topic_id: Uuid) -> Message:
    config = alter_configs.AlterableConfig(name="retention.ms", value="5000")
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=topic, configs=[config]
            )
        ]
    )


def _incremental_alter_configs(version: int, topic: str, topic_id: Uuid) -> Message:
    config = incremental_alter_configs.AlterableConfig(name="retention.ms", value="5000")
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=topic, configs=[config]
            )
        ]
    )


def _create_partitions(version: int, topic: str, topic_id: Uuid) -> Message:
    wanted = create_partitions.CreatePartitionsTopic(name=topic, count=3, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=[wanted])


def _elect_leaders(version: int, topic: str, topic_id: Uuid) -> Message:
    return elect_leaders.ElectLeadersRequest(
        topic_partitions=[elect_leaders.TopicPartitions(topic=topic, partitions=[0, 1])]
    )


def _describe_producers(version: int, topic: str, topic_id: Uuid) -> Message:
    return describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=topic, partition_indexes=[0])]
    )


def _describe_topic_partitions(version: int, topic: str, topic_id: Uuid) -> Message:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=topic)],
        cursor=describe_topic_partitions.Cursor(topic_name=topic, partition_index=1),
    )


def _find_coordinator(version: int, topic: str, topic_id: Uuid) -> Message:
    group = f"group-of-{topic}"
    if version < 4:
        return find_coordinator.FindCoordinatorRequest(key=group)
    return find_coordinator.FindCoordinatorRequest(coordinator_keys=[group])


_REQUESTS = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "SaslHandshake": lambda *_: sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"),
    "ApiVersions": lambda version, *_: api_versions.ApiVersionsRequest(
        client_software_name="test", client_software_version="1.0"
    ),
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "DeleteRecords": _delete_records,
    "FindCoordinator": _find_coordinator,
    "InitProducerId": lambda *_: init_producer_id.InitProducerIdRequest(transactional_id=None),
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "DescribeLogDirs": lambda *_: describe_log_dirs.DescribeLogDirsRequest(topics=None),
    "CreatePartitions": _create_partitions,
    "ElectLeaders": _elect_leaders,
    "IncrementalAlterConfigs": _incremental_alter_configs,
    "AlterPartitionReassignments": lambda *_: (
        alter_partition_reassignments.AlterPartitionReassignmentsRequest()
    ),
    "ListPartitionReassignments": lambda *_: (
        list_partition_reassignments.ListPartitionReassignmentsRequest()
    ),
    "DescribeCluster": lambda *_: describe_cluster.DescribeClusterRequest(
        include_cluster_authorized_operations=True
    ),
    "DescribeProducers": _describe_producers,
    "ListConfigResources": lambda *_: list_config_resources.ListConfigResourcesRequest(),
    "DescribeTopicPartitions": _describe_topic_partitions,
}

"""One file per API: what it does, and how it refuses.

`served_apis` is the one table of what this broker serves; ApiVersions advertises exactly this.
"""

from __future__ import annotations

from types import ModuleType

from barnabas.broker.handlers import (
    alter_configs,
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
from barnabas.broker.router import Served
from barnabas.wire.apis import API_BY_NAME


def _served(name: str, module: ModuleType) -> Served:
    """Serve an API in all its stable versions."""
    api = API_BY_NAME[name]
    versions = api.stable_versions
    return Served(api, versions.first, versions.last, module.handle, module.refuse)


def served_apis() -> dict[int, Served]:
    """Return what this broker serves, by API key."""
    entries = (
        _served("Produce", produce),
        _served("Fetch", fetch),
        _served("ListOffsets", list_offsets),
        _served("Metadata", metadata),
        _served("SaslHandshake", sasl_handshake),
        _served("ApiVersions", api_versions),
        _served("CreateTopics", create_topics),
        _served("DeleteTopics", delete_topics),
        _served("DeleteRecords", delete_records),
        _served("InitProducerId", init_producer_id),
        _served("OffsetForLeaderEpoch", offset_for_leader_epoch),
        _served("DescribeConfigs", describe_configs),
        _served("AlterConfigs", alter_configs),
        _served("DescribeLogDirs", describe_log_dirs),
        _served("CreatePartitions", create_partitions),
        _served("ElectLeaders", elect_leaders),
        _served("IncrementalAlterConfigs", incremental_alter_configs),
        _served("ListPartitionReassignments", list_partition_reassignments),
        _served("DescribeCluster", describe_cluster),
        _served("DescribeProducers", describe_producers),
        _served("ListConfigResources", list_config_resources),
        _served("DescribeTopicPartitions", describe_topic_partitions),
    )
    return {entry.api.key: entry for entry in entries}

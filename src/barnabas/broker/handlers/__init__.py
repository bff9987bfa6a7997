"""One file per API: what it does, and how it responds with an error.

`served_apis` is the one table of what this broker serves; ApiVersions advertises exactly this.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from barnabas.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    broker_standing,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_client_telemetry,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_metadata,
    write_txn_markers,
)
from barnabas.broker.network.router import Served
from barnabas.wire.apis import API_BY_NAME

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def _served(name: str, module: ModuleType) -> Served[Broker]:
    """Serve an API in all its stable versions."""
    api = API_BY_NAME[name]
    versions = api.stable_versions
    return Served(api, versions.first, versions.last, module.handle, module.refuse)


CONTROLLER_KEYS = frozenset(
    API_BY_NAME[name].key for name in ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
)
"""Requests of the controller, served only on the control plane listener if there is one."""


def served_apis(*, alone: bool = True, telemetry: bool = True) -> dict[int, Served[Broker]]:
    """Return what a broker serves, by API key.

    A broker that is `alone` (its coordination is embedded) calls its controller directly, and
    serves none of its requests over the network. Without `telemetry` clients push no metrics.
    """
    entries = [
        _served("Produce", produce),
        _served("Fetch", fetch),
        _served("ListOffsets", list_offsets),
        _served("Metadata", metadata),
        _served("OffsetCommit", offset_commit),
        _served("OffsetFetch", offset_fetch),
        _served("FindCoordinator", find_coordinator),
        _served("JoinGroup", join_group),
        _served("Heartbeat", heartbeat),
        _served("LeaveGroup", leave_group),
        _served("SyncGroup", sync_group),
        _served("DescribeGroups", describe_groups),
        _served("ListGroups", list_groups),
        _served("SaslHandshake", sasl_handshake),
        _served("ApiVersions", api_versions),
        _served("CreateTopics", create_topics),
        _served("DeleteTopics", delete_topics),
        _served("DeleteRecords", delete_records),
        _served("InitProducerId", init_producer_id),
        _served("OffsetForLeaderEpoch", offset_for_leader_epoch),
        _served("AddPartitionsToTxn", add_partitions_to_txn),
        _served("AddOffsetsToTxn", add_offsets_to_txn),
        _served("EndTxn", end_txn),
        _served("WriteTxnMarkers", write_txn_markers),
        _served("TxnOffsetCommit", txn_offset_commit),
        _served("DescribeAcls", describe_acls),
        _served("CreateAcls", create_acls),
        _served("DeleteAcls", delete_acls),
        _served("DescribeConfigs", describe_configs),
        _served("AlterConfigs", alter_configs),
        _served("AlterReplicaLogDirs", alter_replica_log_dirs),
        _served("DescribeLogDirs", describe_log_dirs),
        _served("SaslAuthenticate", sasl_authenticate),
        _served("CreatePartitions", create_partitions),
        _served("CreateDelegationToken", create_delegation_token),
        _served("RenewDelegationToken", renew_delegation_token),
        _served("ExpireDelegationToken", expire_delegation_token),
        _served("DescribeDelegationToken", describe_delegation_token),
        _served("DeleteGroups", delete_groups),
        _served("ElectLeaders", elect_leaders),
        _served("IncrementalAlterConfigs", incremental_alter_configs),
        _served("AlterPartitionReassignments", alter_partition_reassignments),
        _served("ListPartitionReassignments", list_partition_reassignments),
        _served("OffsetDelete", offset_delete),
        _served("DescribeClientQuotas", describe_client_quotas),
        _served("AlterClientQuotas", alter_client_quotas),
        _served("DescribeUserScramCredentials", describe_user_scram_credentials),
        _served("AlterUserScramCredentials", alter_user_scram_credentials),
        _served("DescribeCluster", describe_cluster),
        _served("DescribeProducers", describe_producers),
        _served("DescribeTransactions", describe_transactions),
        _served("ListTransactions", list_transactions),
        _served("ConsumerGroupHeartbeat", consumer_group_heartbeat),
        _served("ConsumerGroupDescribe", consumer_group_describe),
        _served("ListConfigResources", list_config_resources),
        _served("DescribeTopicPartitions", describe_topic_partitions),
    ]
    if telemetry:
        entries += [
            _served("GetTelemetrySubscriptions", get_telemetry_subscriptions),
            _served("PushTelemetry", push_telemetry),
            _served("DescribeClientTelemetry", describe_client_telemetry),
        ]
    if not alone:
        entries += [
            _served("LeaderAndIsr", leader_and_isr),
            _served("StopReplica", stop_replica),
            _served("UpdateMetadata", update_metadata),
            _served("ControlledShutdown", controlled_shutdown),
            _served("AlterPartition", alter_partition),
            _served("AllocateProducerIds", allocate_producer_ids),
            _served("BrokerStanding", broker_standing),
        ]
    return {entry.api.key: entry for entry in entries}

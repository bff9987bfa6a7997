"""Changes to the cluster itself: features, quorum, brokers, replicas on the move, elections."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admin.scripted import converse, in_turn

from barnabas.admin.cluster import QuorumNode, describe_quorum, unregister_broker
from barnabas.admin.features import (
    FeatureUpdate,
    LevelRange,
    UpdateFeatureType,
    describe_features,
    update_features,
)
from barnabas.admin.log_dirs import alter_replica_log_dirs
from barnabas.admin.reassignments import (
    ElectionType,
    Reassignment,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from barnabas.client.errors import UnsupportedApiError
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import (
    BrokerIdNotRegisteredError,
    ElectionNotNeededError,
    FeatureUpdateFailedError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
)
from barnabas.structs import TopicPartitionReplica
from barnabas.wire.messages import alter_partition_reassignments as altering
from barnabas.wire.messages import alter_replica_log_dirs as moving
from barnabas.wire.messages import (
    api_versions,
)
from barnabas.wire.messages import (
    describe_quorum as quorum,
)
from barnabas.wire.messages import elect_leaders as electing
from barnabas.wire.messages import list_partition_reassignments as listing
from barnabas.wire.messages import (
    update_features as update,
)
from barnabas.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_reassignments_succeed_or_fail_one_by_one() -> None:
    def answer(*codes: int) -> altering.AlterPartitionReassignmentsResponse:
        results = [
            altering.ReassignablePartitionResponse(partition_index=index, error_code=code)
            for index, code in enumerate(codes)
        ]
        topic = altering.ReassignableTopicResponse(name="t", partitions=results)
        return altering.AlterPartitionReassignmentsResponse(responses=[topic])

    moved = altering.AlterPartitionReassignmentsResponse(error_code=41)
    outcomes, broker = converse(
        {altering.AlterPartitionReassignmentsRequest: in_turn(moved, answer(0, 85))},
        lambda cluster_client: alter_partition_reassignments(
            cluster_client, {T0: [2, 3], T1: None}
        ),
    )
    assert outcomes[T0] is None
    assert isinstance(outcomes[T1], NoReassignmentInProgressError)
    asked = broker.asked(altering.AlterPartitionReassignmentsRequest)
    assert len(asked) == 2
    sent: Any = asked[1].message
    assert [each.replicas for each in sent.topics[0].partitions] == [[2, 3], None]
    with pytest.raises(InvalidValueError, match="t-0: the list of replicas must not be empty"):
        converse({}, lambda cluster_client: alter_partition_reassignments(cluster_client, {T0: []}))


def test_what_is_on_the_move() -> None:
    ongoing = listing.OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
    )
    topic = listing.OngoingTopicReassignment(name="t", partitions=[ongoing])
    answer = listing.ListPartitionReassignmentsResponse(topics=[topic])
    found, broker = converse(
        {listing.ListPartitionReassignmentsRequest: in_turn(answer)},
        lambda cluster_client: list_partition_reassignments(cluster_client, [T1]),
    )
    assert found == {T1: Reassignment((1, 2, 3), (3,), (1,))}
    sent: Any = broker.asked(listing.ListPartitionReassignmentsRequest)[0].message
    assert [(each.name, each.partition_indexes) for each in sent.topics] == [("t", [1])]


def test_elections() -> None:
    results = [
        electing.PartitionResult(partition_id=0),
        electing.PartitionResult(partition_id=1, error_code=84),
    ]
    topic = electing.ReplicaElectionResult(topic="t", partition_result=results)
    answer = electing.ElectLeadersResponse(replica_election_results=[topic])
    script = {electing.ElectLeadersRequest: in_turn(answer)}
    outcomes, broker = converse(script, lambda cluster_client: elect_leaders(cluster_client))
    assert outcomes[T0] is None
    assert isinstance(outcomes[T1], ElectionNotNeededError)
    sent: Any = broker.asked(electing.ElectLeadersRequest)[0].message
    assert sent.topic_partitions is None
    with pytest.raises(UnsupportedApiError):
        converse(
            script,
            lambda cluster_client: elect_leaders(cluster_client, [T0], ElectionType.UNCLEAN),
            {electing.ElectLeadersRequest: (0, 0)},
        )


def test_replicas_move_between_directories_and_a_lost_broker_fails_its_own() -> None:
    results = [moving.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=57)]
    topic = moving.AlterReplicaLogDirTopicResult(topic_name="t", partitions=results)
    answer = moving.AlterReplicaLogDirsResponse(results=[topic])
    here, elsewhere = TopicPartitionReplica("t", 0, 1), TopicPartitionReplica("t", 0, 2)
    outcomes, _ = converse(
        {moving.AlterReplicaLogDirsRequest: in_turn(answer)},
        lambda cluster_client: alter_replica_log_dirs(
            cluster_client, {here: "/d", elsewhere: "/d"}
        ),
    )
    assert isinstance(outcomes[here], LogDirNotFoundError)
    assert isinstance(outcomes[elsewhere], RequestError)
    assert "broker 2 is not in the cluster" in str(outcomes[elsewhere])


def test_features_and_their_updates() -> None:
    supported = api_versions.SupportedFeatureKey(name="f", min_version=1, max_version=9)
    final = api_versions.FinalizedFeatureKey(name="f", min_version_level=1, max_version_level=4)

    def versions(request: Any, version: int) -> api_versions.ApiVersionsResponse:
        keys = [(3, 0, 12), (18, 0, 4), (57, 0, 1)]
        return api_versions.ApiVersionsResponse(
            api_keys=[
                api_versions.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, low, high in keys
            ],
            supported_features=[supported],
            finalized_features=[final],
            finalized_features_epoch=12,
        )

    result = update.UpdatableFeatureResult(feature="g", error_code=96, error_message="too high")
    answer = update.UpdateFeaturesResponse(results=[result])

    async def client(cluster_client: Any) -> Any:
        described = await describe_features(cluster_client)
        assert described.supported == {"f": LevelRange(1, 9)}
        assert described.finalized == {"f": LevelRange(1, 4)}
        assert described.finalized_epoch == 12
        down = FeatureUpdate(3, UpdateFeatureType.SAFE_DOWNGRADE)
        return await update_features(cluster_client, {"f": down, "g": FeatureUpdate(99)})

    outcomes, broker = converse(
        {
            api_versions.ApiVersionsRequest: versions,
            update.UpdateFeaturesRequest: in_turn(answer),
        },
        client,
    )
    assert outcomes["f"] is None
    assert isinstance(outcomes["g"], FeatureUpdateFailedError)
    sent: Any = broker.asked(update.UpdateFeaturesRequest)[0].message
    assert [each.upgrade_type for each in sent.feature_updates] == [2, 1]


def test_the_quorum_and_a_broker_less() -> None:
    voter = quorum.ReplicaState(replica_id=3, log_end_offset=8, last_caught_up_timestamp=5)
    partition = quorum.PartitionData(leader_id=3, high_watermark=7, current_voters=[voter])
    listener = quorum.Listener(name="CONTROLLER", host="c", port=9093)
    answer = quorum.DescribeQuorumResponse(
        topics=[quorum.TopicData(partitions=[partition])],
        nodes=[quorum.Node(node_id=3, listeners=[listener])],
    )
    script = {
        quorum.DescribeQuorumRequest: in_turn(answer),
        UnregisterBrokerRequest: in_turn(
            UnregisterBrokerResponse(error_code=102, error_message="no broker 7")
        ),
    }

    async def client(cluster_client: Any) -> Any:
        with pytest.raises(BrokerIdNotRegisteredError, match="broker 7: no broker 7"):
            await unregister_broker(cluster_client, 7)
        return await describe_quorum(cluster_client)

    described, _ = converse(script, client)
    assert (described.leader_id, described.high_watermark, described.error) == (3, 7, None)
    assert (described.voters[0].last_fetch_ms, described.voters[0].last_caught_up_ms) == (None, 5)
    assert described.nodes == (QuorumNode(3, (("CONTROLLER", "c", 9093),)),)

"""The table of APIs: key, name, messages, versions, header rules.

The table itself holds keys and names. Everything about versions comes from the declarations in
`messages`, whose modules are imported when an API is first used. What a broker serves follows from
the handlers that it registers against this table; nothing here implies that an API is served.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module
from math import inf
from typing import Final

from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.schema import Message, Versions

API_VERSIONS_KEY: Final = 18
CONTROLLED_SHUTDOWN_KEY: Final = 7
OWN_KEYS_FROM: Final = 30_000
"""APIs with larger keys are not Kafka's."""


class Api:
    """One API: a pair of messages with a key."""

    def __init__(self, key: int, name: str, *, cluster_action: bool = False) -> None:
        self.key = key
        self.name = name
        self.cluster_action = cluster_action
        """Only brokers may call it, which is authorized as an action on the cluster."""

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name!r})"

    @cached_property
    def request(self) -> type[Message]:
        """The class of its requests."""
        return self._declared("Request")

    @cached_property
    def response(self) -> type[Message]:
        """The class of its responses."""
        return self._declared("Response")

    @property
    def versions(self) -> Versions:
        """The versions that can be read and written."""
        return self.request.VERSIONS

    @property
    def stable_versions(self) -> Versions:
        """The versions except an experimental one."""
        return self.request.STABLE

    @cached_property
    def flexible_from(self) -> int | None:
        """The first version with compact lengths and tags, if there is one."""
        return None if self.request.FLEXIBLE is None else self.request.FLEXIBLE.first

    def is_flexible(self, version: int) -> bool:
        """Return whether a version is flexible; also for versions that are not known yet."""
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        """Return the version of the request header for a version."""
        if self.is_flexible(version):
            return 2
        return 0 if self.key == CONTROLLED_SHUTDOWN_KEY and version == 0 else 1

    def response_header_version(self, version: int) -> int:
        """Return the version of the response header for a version.

        ApiVersions responses keep the oldest header: a client reads them before it knows the
        broker.
        """
        return 1 if version >= self.tagged_response_from else 0

    @cached_property
    def tagged_response_from(self) -> float:
        """The first version whose response header has tags; infinite if none has."""
        flexible_from = self.flexible_from
        return inf if flexible_from is None or self.key == API_VERSIONS_KEY else flexible_from

    def _declared(self, suffix: str) -> type[Message]:
        module = import_module(f"barnabas.wire.messages.{module_name(self.name)}")
        declared: type[Message] = getattr(module, self.name + suffix)
        return declared


def module_name(api_name: str) -> str:
    """Return the module of `messages` that declares an API: `ListOffsets` is in `list_offsets`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_name).lower()


APIS: Final[tuple[Api, ...]] = (
    Api(0, "Produce"),
    Api(1, "Fetch"),
    Api(2, "ListOffsets"),
    Api(3, "Metadata"),
    Api(4, "LeaderAndIsr", cluster_action=True),
    Api(5, "StopReplica", cluster_action=True),
    Api(6, "UpdateMetadata", cluster_action=True),
    Api(CONTROLLED_SHUTDOWN_KEY, "ControlledShutdown", cluster_action=True),
    Api(8, "OffsetCommit"),
    Api(9, "OffsetFetch"),
    Api(10, "FindCoordinator"),
    Api(11, "JoinGroup"),
    Api(12, "Heartbeat"),
    Api(13, "LeaveGroup"),
    Api(14, "SyncGroup"),
    Api(15, "DescribeGroups"),
    Api(16, "ListGroups"),
    Api(17, "SaslHandshake"),
    Api(API_VERSIONS_KEY, "ApiVersions"),
    Api(19, "CreateTopics"),
    Api(20, "DeleteTopics"),
    Api(21, "DeleteRecords"),
    Api(22, "InitProducerId"),
    Api(23, "OffsetForLeaderEpoch"),
    Api(24, "AddPartitionsToTxn"),
    Api(25, "AddOffsetsToTxn"),
    Api(26, "EndTxn"),
    Api(27, "WriteTxnMarkers", cluster_action=True),
    Api(28, "TxnOffsetCommit"),
    Api(29, "DescribeAcls"),
    Api(30, "CreateAcls"),
    Api(31, "DeleteAcls"),
    Api(32, "DescribeConfigs"),
    Api(33, "AlterConfigs"),
    Api(34, "AlterReplicaLogDirs"),
    Api(35, "DescribeLogDirs"),
    Api(36, "SaslAuthenticate"),
    Api(37, "CreatePartitions"),
    Api(38, "CreateDelegationToken"),
    Api(39, "RenewDelegationToken"),
    Api(40, "ExpireDelegationToken"),
    Api(41, "DescribeDelegationToken"),
    Api(42, "DeleteGroups"),
    Api(43, "ElectLeaders"),
    Api(44, "IncrementalAlterConfigs"),
    Api(45, "AlterPartitionReassignments"),
    Api(46, "ListPartitionReassignments"),
    Api(47, "OffsetDelete"),
    Api(48, "DescribeClientQuotas"),
    Api(49, "AlterClientQuotas"),
    Api(50, "DescribeUserScramCredentials"),
    Api(51, "AlterUserScramCredentials"),
    Api(55, "DescribeQuorum"),
    Api(56, "AlterPartition", cluster_action=True),
    Api(57, "UpdateFeatures"),
    Api(58, "Envelope", cluster_action=True),
    Api(60, "DescribeCluster"),
    Api(61, "DescribeProducers"),
    Api(64, "UnregisterBroker"),
    Api(65, "DescribeTransactions"),
    Api(66, "ListTransactions"),
    Api(67, "AllocateProducerIds", cluster_action=True),
    Api(68, "ConsumerGroupHeartbeat"),
    Api(69, "ConsumerGroupDescribe"),
    Api(71, "GetTelemetrySubscriptions"),
    Api(72, "PushTelemetry"),
    Api(74, "ListConfigResources"),
    Api(75, "DescribeTopicPartitions"),
    Api(OWN_KEYS_FROM + 1, "BrokerStanding", cluster_action=True),
    Api(OWN_KEYS_FROM + 11, "DescribeClientTelemetry"),
)

API_BY_KEY: Final = {entry.key: entry for entry in APIS}
API_BY_NAME: Final = {entry.name: entry for entry in APIS}


def api(key: int) -> Api:
    """Return the API of a key that a peer sent; raise RemoteProtocolError if there is none."""
    try:
        return API_BY_KEY[key]
    except KeyError:
        raise RemoteProtocolError(f"no API has the key {key}") from None


def api_of(message: type[Message]) -> Api:
    """Return the API that a request or response class belongs to."""
    assert message.KEY is not None, f"{message.__name__} is not a request or response"
    return API_BY_KEY[message.KEY]

"""Administration of a cluster: async functions over a `ClusterClient`, a module per noun.

Functions about several things return for each of them a result or its `RequestError`.

The values that `KafkaAdminClient` and `AIOKafkaAdminClient` take and return can be imported from
here, as from `kafka.admin` and `aiokafka.admin`. They are loaded on first use: a command of ours
imports the one module that it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.admin.acls import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ResourcePattern,
        ResourcePatternFilter,
        ResourceType,
    )
    from barnabas.admin.config_entries import AlterConfigOp, ConfigResourceType, ConfigType
    from barnabas.admin.config_sources import ConfigFilterType, ConfigResource, ConfigSourceType
    from barnabas.admin.features import FeatureUpdate, UpdateFeatureType
    from barnabas.admin.group_words import GroupState, GroupType
    from barnabas.admin.groups import MemberToRemove
    from barnabas.admin.offsets import OffsetSpec, OffsetTimestamp, RecordsToDelete
    from barnabas.admin.quotas import QuotaAlteration, QuotaFilter, QuotaMatch
    from barnabas.admin.reassignments import ElectionType
    from barnabas.admin.scram import (
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from barnabas.admin.topics import NewPartitions, NewTopic
    from barnabas.admin.transaction_words import (
        AbortTransactionSpec,
        PartitionProducerState,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )

_HOMES = {
    "acls": (
        "ACL",
        "ACLFilter",
        "ACLOperation",
        "ACLPermissionType",
        "ACLResourcePatternType",
        "ResourcePattern",
        "ResourcePatternFilter",
        "ResourceType",
    ),
    "config_entries": (
        "AlterConfigOp",
        "ConfigResourceType",
        "ConfigType",
    ),
    "config_sources": (
        "ConfigFilterType",
        "ConfigResource",
        "ConfigSourceType",
    ),
    "features": (
        "FeatureUpdate",
        "UpdateFeatureType",
    ),
    "group_words": (
        "GroupState",
        "GroupType",
    ),
    "groups": ("MemberToRemove",),
    "offsets": (
        "OffsetSpec",
        "OffsetTimestamp",
        "RecordsToDelete",
    ),
    "quotas": (
        "QuotaAlteration",
        "QuotaFilter",
        "QuotaMatch",
    ),
    "reassignments": ("ElectionType",),
    "scram": (
        "ScramMechanism",
        "UserScramCredentialDeletion",
        "UserScramCredentialUpsertion",
    ),
    "topics": (
        "NewPartitions",
        "NewTopic",
    ),
    "transaction_words": (
        "AbortTransactionSpec",
        "PartitionProducerState",
        "ProducerState",
        "TransactionDescription",
        "TransactionListing",
        "TransactionState",
    ),
}
_MODULES = {name: f"barnabas.admin.{home}" for home, names in _HOMES.items() for name in names} | {
    "KafkaAdminClient": "barnabas.blocking.admin",
    "AIOKafkaAdminClient": "barnabas.aio.admin",
}

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "AbortTransactionSpec",
    "AlterConfigOp",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "ElectionType",
    "FeatureUpdate",
    "GroupState",
    "GroupType",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "OffsetTimestamp",
    "PartitionProducerState",
    "ProducerState",
    "QuotaAlteration",
    "QuotaFilter",
    "QuotaMatch",
    "RecordsToDelete",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramMechanism",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpdateFeatureType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)

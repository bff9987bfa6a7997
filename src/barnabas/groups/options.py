"""The options of group coordination, independent of where they are configured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from barnabas.config.broker.groups import GroupsOptions


class MigrationPolicy(Enum):
    """Which online migrations between protocols are allowed (see `migration`)."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The broker options that a group coordinator uses; the defaults are Kafka's."""

    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = 2**31 - 1
    offset_metadata_bytes_max: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    consumer_protocol: bool = True
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_session_timeout_ms: int = 45_000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    @classmethod
    def from_broker(cls, options: GroupsOptions) -> GroupOptions:
        """Extract the group options from a broker's options."""
        return cls(
            session_timeout_ms_min=options.group_min_session_timeout_ms,
            session_timeout_ms_max=options.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=options.group_initial_rebalance_delay_ms,
            size_max=options.group_max_size,
            offset_metadata_bytes_max=options.offset_metadata_max_bytes,
            offsets_retention_ms=options.offsets_retention_minutes * 60_000,
            consumer_protocol="consumer" in options.group_coordinator_rebalance_protocols,
            consumer_heartbeat_interval_ms=options.group_consumer_heartbeat_interval_ms,
            consumer_session_timeout_ms=options.group_consumer_session_timeout_ms,
            consumer_size_max=options.group_consumer_max_size,
            consumer_assignors=tuple(map(_assignor_name, options.group_consumer_assignors)),
            migration=MigrationPolicy(options.group_consumer_migration_policy),
        )


def _assignor_name(name: str) -> str:
    """Return the name of an assignor, which Kafka's config files may give as its class."""
    return name.rpartition(".")[2].removesuffix("Assignor").lower()

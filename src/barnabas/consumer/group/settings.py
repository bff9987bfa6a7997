"""The settings of a group member: names, timeouts, and how it commits.

A plain value, so that the parts of a member need not know the consumer's options. Times are in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.client.retry import Backoff
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.group.callbacks import CommitCallback
from barnabas.metadata.topic_names import illegal_name
from barnabas.model.errors import ConfigError
from barnabas.model.isolation import IsolationLevel


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of one member."""

    group_id: str
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    rebalance_timeout_ms: int | None = None
    """How long a rebalance waits for this member; None: as long as max.poll.interval.ms."""
    auto_commit_interval_ms: int | None = 5_000
    """None: the user commits."""
    commit_callback: CommitCallback | None = None
    """Called for commits that have no callback of their own."""
    require_stable: bool = False
    """Read offsets only when no transaction can still change them (read_committed)."""
    exclude_internal_topics: bool = True
    """Whether patterns skip the internal topics of brokers."""
    rack_id: str | None = None
    remote_assignor: str | None = None
    retry_backoff_ms: float = 100
    retry_backoff_ms_max: float = 1000
    request_timeout_ms: float = 30_000
    default_timeout_ms: float = 60_000
    """How long a blocking call may take if its caller sets no limit."""

    @classmethod
    def from_options(cls, options: ConsumerOptions) -> GroupSettings:
        """Extract the settings from a consumer's options, which name a group."""
        return cls(
            group_id=options.group_id or "",
            instance_id=options.group_instance_id,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            max_poll_interval_ms=options.max_poll_interval_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            auto_commit_interval_ms=(
                options.auto_commit_interval_ms if options.enable_auto_commit else None
            ),
            commit_callback=options.default_offset_commit_callback,
            require_stable=options.isolation_level == IsolationLevel.READ_COMMITTED,
            exclude_internal_topics=options.exclude_internal_topics,
            rack_id=options.client_rack or None,
            remote_assignor=options.group_remote_assignor,
            retry_backoff_ms=options.retry_backoff_ms,
            retry_backoff_ms_max=options.retry_backoff_max_ms,
            request_timeout_ms=options.request_timeout_ms,
            default_timeout_ms=options.default_api_timeout_ms,
        )

    @property
    def rebalance_ms_max(self) -> int:
        """How long a rebalance waits for this member."""
        return self.rebalance_timeout_ms or self.max_poll_interval_ms

    def backoff(self, random: Callable[[], float]) -> Backoff:
        """Return the back-off between attempts."""
        return Backoff(random, initial_ms=self.retry_backoff_ms, max_ms=self.retry_backoff_ms_max)

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group.id is empty: a group needs a name")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms} must be less than "
                f"session.timeout.ms={self.session_timeout_ms}; a third of it is usual"
            )
        if self.instance_id is not None:
            reason = illegal_name(self.instance_id, "group.instance.id")
            if reason is not None:
                raise ConfigError(reason)

"""What a membership is told once: names, times, and how it commits.

A plain value, so that the parts of a membership need not know the consumer's options. Times are in
milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.model.errors import ConfigError

_INSTANCE_ID_LENGTH_MAX = 249
_INSTANCE_ID = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of one member."""

    group_id: str
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    auto_commit_interval_ms: int | None = 5_000
    """None: the user commits."""
    require_stable: bool = False
    """Read offsets only when no transaction can still change them (read_committed)."""
    exclude_internal_topics: bool = True
    """Whether patterns pass over the internal topics of brokers."""
    rack_id: str | None = None
    remote_assignor: str | None = None
    retry_backoff_ms: float = 100
    retry_backoff_ms_max: float = 1000
    request_timeout_ms: float = 30_000
    default_timeout_ms: float = 60_000
    """How long a call that waits may take if its caller does not say."""

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group.id is empty: a group needs a name")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms} must be less than "
                f"session.timeout.ms={self.session_timeout_ms}; a third of it is usual"
            )
        if self.instance_id is not None:
            _check_instance_id(self.instance_id)


def _check_instance_id(name: str) -> None:
    if (
        len(name) > _INSTANCE_ID_LENGTH_MAX
        or name in (".", "..")
        or _INSTANCE_ID.fullmatch(name) is None
    ):
        raise ConfigError(
            f"group.instance.id={name!r}: 1 to {_INSTANCE_ID_LENGTH_MAX} letters, digits, "
            "'.', '_' and '-', and neither '.' nor '..'"
        )

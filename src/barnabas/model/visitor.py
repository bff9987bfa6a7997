"""What passes between a broker and its console: who asks, and short answers that no message has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from barnabas.model.errors import BarnabasError


class Mode(Enum):
    """What the console may do, whatever its user may do."""

    FULL = "full"
    READ_ONLY = "read-only"
    """No request that changes anything."""
    METADATA_ONLY = "metadata-only"
    """Read-only, and no contents of records."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: a principal that the broker has let in, and where its browser runs."""

    principal: str
    """As `User:alice`."""
    host: str
    by_token: bool = False
    """Whether it has logged in with a delegation token."""

    @property
    def name(self) -> str:
        """The principal's name, without its type."""
        return self.principal.partition(":")[2]


class LoginRejected(BarnabasError):
    """A log-in that failed; the text is for the user, and does not say which part was wrong."""


@dataclass(frozen=True, slots=True)
class VisibleTopic:
    """A topic that a visitor may describe, as this broker's metadata has it."""

    name: str
    topic_id: bytes
    partitions: int
    replicas: int
    """Of the first partition."""
    internal: bool
    under_replicated: int
    """Partitions with fewer in-sync replicas than replicas."""
    offline: int
    """Partitions without a leader."""
    not_preferred: int = 0
    """Partitions that another than their first replica leads."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a principal may do something, and by which rule."""

    allowed: bool
    reason: str

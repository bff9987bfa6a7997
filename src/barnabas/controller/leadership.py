"""Who leads a partition, who is in sync, who holds it: two values that never change in place."""

from __future__ import annotations

from typing import NamedTuple

LEADER_OF_A_DELETED_TOPIC = -2
"""Stands in UpdateMetadata for the leader of a topic that is being deleted."""


class Leadership(NamedTuple):
    """What a partition's node says, and which version of it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    recovering: bool = False

    def led_by(
        self, leader: int, isr: tuple[int, ...], *, recovering: bool | None = None
    ) -> Leadership:
        """Return the next reign: a new epoch, and the version that its node will have."""
        return Leadership(
            leader,
            self.leader_epoch + 1,
            isr,
            self.partition_epoch + 1,
            self.recovering if recovering is None else recovering,
        )

    def with_isr(self, isr: tuple[int, ...], *, recovering: bool) -> Leadership:
        """Return the same reign with other in-sync replicas."""
        return self._replace(
            isr=isr, recovering=recovering, partition_epoch=self.partition_epoch + 1
        )


class Assignment(NamedTuple):
    """Who holds a partition, and who is coming and going while it is reassigned."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        """True while a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Return the replicas from before the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas that the reassignment leads to."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    def towards(self, target: tuple[int, ...]) -> Assignment:
        """Return the assignment that leads from the original replicas to `target`."""
        origin = self.origin
        everyone = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(
            everyone,
            tuple(replica for replica in everyone if replica not in origin),
            tuple(replica for replica in everyone if replica not in target),
        )

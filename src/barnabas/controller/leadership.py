"""A partition's leadership and its assignment, as immutable values."""

from __future__ import annotations

from typing import NamedTuple

LEADER_OF_A_DELETED_TOPIC = -2
"""Leader id in UpdateMetadata for a topic that is being deleted."""


class Leadership(NamedTuple):
    """The contents of a partition's state node, and the node's version."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    recovering: bool = False

    def led_by(
        self, leader: int, isr: tuple[int, ...], *, recovering: bool | None = None
    ) -> Leadership:
        """Return the leadership in a new epoch, with the version that its node will have."""
        return Leadership(
            leader,
            self.leader_epoch + 1,
            isr,
            self.partition_epoch + 1,
            self.recovering if recovering is None else recovering,
        )

    def with_isr(self, isr: tuple[int, ...], *, recovering: bool) -> Leadership:
        """Return the same leader and epoch with another ISR."""
        return self._replace(
            isr=isr, recovering=recovering, partition_epoch=self.partition_epoch + 1
        )


class Assignment(NamedTuple):
    """The replicas of a partition, and those being added and removed by a reassignment."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Return the replicas from before the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Return the target replicas of the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    def towards(self, target: tuple[int, ...]) -> Assignment:
        """Return the assignment that moves the original replicas to `target`."""
        origin = self.origin
        everyone = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(
            everyone,
            tuple(replica for replica in everyone if replica not in origin),
            tuple(replica for replica in everyone if replica not in target),
        )

"""What the controller decided about one partition, as a broker is told it."""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """Who leads a partition in which epoch, who follows, and who is in sync."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    """The version of the partition's node: which change of the ISR this is."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """The leader was elected although it was not in sync, and has not made up for it."""

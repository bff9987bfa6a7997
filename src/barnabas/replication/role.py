"""A broker's role in one partition, as sent by the controller."""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """The leader of a partition, its epoch, the replicas and the ISR."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    """The version of the partition's node, which grows with every ISR change."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """The leader was elected although it was out of sync, and has not recovered yet."""

"""Who a consumer is in its group, as consumers tell it and transactional producers show it."""

from __future__ import annotations

from typing import NamedTuple


class MemberState:
    """How far a consumer is with its group."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """What a transactional producer shows when it commits offsets for a consumer.

    A producer that shows an old generation is refused, so a consumer that was replaced cannot
    commit what its successor has read (KIP-447).
    """

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED

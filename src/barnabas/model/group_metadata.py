"""A consumer's identity in its group, which transactional producers present to the broker."""

from __future__ import annotations

from typing import NamedTuple


class MemberState:
    """Membership state of a consumer."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """What a transactional producer sends when it commits offsets for a consumer.

    An old generation is fenced, so that a consumer that was replaced cannot commit what its
    successor has read (KIP-447).
    """

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED

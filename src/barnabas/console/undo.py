"""Resets of groups that can be undone: what was committed before, as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.admin.group_offsets import CommittedOffset
from barnabas.model.ids import TopicPartition

GROUPS_MAX = 200


@dataclass(frozen=True, slots=True)
class Undo:
    """The last reset of a group, and what it replaced."""

    time_ms: int
    before: Mapping[TopicPartition, CommittedOffset | None]
    """None where nothing was committed."""


class Undos:
    """The last reset of each group by each user: what others have reset is not for everybody."""

    def __init__(self) -> None:
        self._undos: OrderedDict[tuple[str, str], Undo] = OrderedDict()

    def keep(self, principal: str, group: str, undo: Undo) -> None:
        """Remember a reset; an earlier one of the same group is forgotten."""
        self._undos.pop((principal, group), None)
        self._undos[principal, group] = undo
        if len(self._undos) > GROUPS_MAX:
            self._undos.popitem(last=False)

    def of(self, principal: str, group: str) -> Undo | None:
        """Return the last reset of a group by a user."""
        return self._undos.get((principal, group))

    def drop(self, principal: str, group: str) -> None:
        """Forget a reset: it was undone."""
        self._undos.pop((principal, group), None)

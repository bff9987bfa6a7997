"""Expiry of offsets and groups: past their retention, or of deleted topics."""

from __future__ import annotations

from collections.abc import Callable, Collection

from barnabas.groups.group import Groups
from barnabas.groups.offset_table import OffsetTable
from barnabas.model.error_codes import ErrorCode
from barnabas.model.outcome import Outcome, Reply


class Forgetting:
    """Removes expired offsets and groups of one coordinator."""

    def __init__(self, groups: Groups, offsets: OffsetTable) -> None:
        self._groups = groups
        self._offsets = offsets

    def expire_offsets(self, now_ms: int) -> Outcome:
        """Remove expired offsets, and empty groups that have none left."""
        outcome = Outcome()
        undos: list[Callable[[], None]] = []
        gone: Groups = {}
        for group_id, group in list(self._groups.items()):
            rule = group.expiry()
            if rule is not None:
                records, undo_expiry = self._offsets.expire(group_id, rule, now_ms)
                outcome.records += records
                undos.append(undo_expiry)
            if group.is_idle and not self._offsets.of(group_id):
                outcome.records += group.tombstones()
                gone[group_id] = self._groups.pop(group_id)

        def undo(code: ErrorCode) -> list[Reply]:
            self._groups.update({**gone, **self._groups})
            for step in reversed(undos):
                step()
            return []

        outcome.undo = undo if outcome.records else None
        return outcome

    def topics_deleted(self, names: Collection[str]) -> Outcome:
        """Remove the offsets of deleted topics."""
        records = self._offsets.remove_topics(names)
        return Outcome(records=records, undo=(lambda code: []) if records else None)

"""How many of the available offsets belong to the next batch of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.model.ids import TopicPartition


def limit_rate(backlog: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """Divide `limit` offsets among partitions in proportion to the backlog of each.

    The sum is exactly the limit, or the whole backlog if that is less. Rounding favours
    the largest remainders, so that a small partition beside a large one is never starved.
    """
    pending = {partition: count for partition, count in backlog.items() if count > 0}
    total = sum(pending.values())
    if total <= limit:
        return pending
    shares = {partition: limit * count // total for partition, count in pending.items()}
    left = limit - sum(shares.values())
    remainders = sorted(
        pending, key=lambda partition: (-(limit * pending[partition] % total), partition)
    )
    for partition in remainders[:left]:
        shares[partition] += 1
    return shares


class TriggerDelay:
    """Delays a batch until it has `minOffsetsPerTrigger`, but no longer than `maxTriggerDelay`."""

    def __init__(self, offsets_min: int | None, delay_ms_max: int) -> None:
        self._offsets_min = offsets_min
        self._delay_ms_max = delay_ms_max
        self._last_ms: float | None = None

    def is_due(self, pending: int, now_ms: float) -> bool:
        """Return whether a batch is due; the first one always is."""
        due = (
            self._offsets_min is None
            or pending >= self._offsets_min
            or self._last_ms is None
            or now_ms - self._last_ms >= self._delay_ms_max
        )
        if due and pending:
            self._last_ms = now_ms
        return due

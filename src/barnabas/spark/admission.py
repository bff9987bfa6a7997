"""How much of what is there goes into the next batch of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.model.ids import TopicPartition


def share(backlog: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """Divide `limit` offsets among partitions in proportion to what waits in each.

    Together they are the limit exactly, or all that waits if that is less. What rounding leaves
    goes to the largest remainders, so a small partition beside a large one is not starved for ever.
    """
    waiting = {place: count for place, count in backlog.items() if count > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    shares = {place: limit * count // total for place, count in waiting.items()}
    left = limit - sum(shares.values())
    remainders = sorted(waiting, key=lambda place: (-(limit * waiting[place] % total), place))
    for place in remainders[:left]:
        shares[place] += 1
    return shares


class Patience:
    """Waits for `minOffsetsPerTrigger`, but no longer than `maxTriggerDelay`."""

    def __init__(self, least: int | None, delay_ms: int) -> None:
        self._least = least
        self._delay_ms = delay_ms
        self._last_ms: float | None = None

    def is_enough(self, waiting: int, now_ms: float) -> bool:
        """Tell whether a batch is due; the first one always is."""
        due = (
            self._least is None
            or waiting >= self._least
            or self._last_ms is None
            or now_ms - self._last_ms >= self._delay_ms
        )
        if due and waiting:
            self._last_ms = now_ms
        return due

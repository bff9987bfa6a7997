"""How fast numbers change, from what pages have seen of them: nothing is asked for this alone.

rates.note(("group", "billing"), now_s, committed, end)
rates.per_second(("group", "billing"))  # (1200.0, 1300.0), None until there are two looks
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

KEYS_MAX = 1000
LOOKS_MAX = 60
SPAN_S = 60.0
"""A rate is that of the last minute."""
APART_S = 1.0
"""Looks that are closer together are one: two viewers see the same numbers."""
STEADY = 0.02
"""Rates that differ by less of the larger one are the same."""


class Rates:
    """Numbers by key as they were seen, within bounds."""

    def __init__(self) -> None:
        self._looks: OrderedDict[Hashable, deque[tuple[float, tuple[float, ...]]]] = OrderedDict()

    def note(self, key: Hashable, now_s: float, *values: float) -> None:
        """Take a look; fewer or smaller numbers than before begin from scratch."""
        looks = self._looks.get(key)
        if looks is None:
            looks = self._looks[key] = deque(maxlen=LOOKS_MAX)
            if len(self._looks) > KEYS_MAX:
                self._looks.popitem(last=False)
        self._looks.move_to_end(key)
        if looks:
            last_s, last = looks[-1]
            if len(last) != len(values) or any(
                now < before for now, before in zip(values, last, strict=True)
            ):
                looks.clear()
            elif now_s - last_s < APART_S:
                return
        looks.append((now_s, values))
        while now_s - looks[0][0] > SPAN_S and len(looks) > 2:
            looks.popleft()

    def per_second(self, key: Hashable) -> tuple[float, ...] | None:
        """Return how much each number grows in a second; None while it is not known."""
        looks = self._looks.get(key)
        if looks is None or len(looks) < 2:
            return None
        (first_s, first), (last_s, last) = looks[0], looks[-1]
        elapsed_s = last_s - first_s
        return tuple((now - before) / elapsed_s for now, before in zip(last, first, strict=True))


def trend(lag: int | None, read: float | None, written: float | None) -> str:
    """Return in words how a lag changes, and when it is gone."""
    if lag is None or read is None or written is None:
        return ""
    if abs(read - written) <= STEADY * max(read, written) or lag == 0:
        return "none" if lag == 0 else "steady"
    if read < written:
        return f"grows by {written - read:,.1f} a second"
    return f"falls by {read - written:,.1f} a second"


def drained_ms(lag: int | None, read: float | None, written: float | None) -> float | None:
    """Return how long it takes until a lag is gone; None if it does not fall."""
    if lag == 0:
        return 0.0
    if lag is None or read is None or written is None:
        return None
    if read - written <= STEADY * read:
        return None
    return lag / (read - written) * 1000

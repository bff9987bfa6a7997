"""One computation per scrape."""

from __future__ import annotations

import itertools

from barnabas.broker.monitoring.recent import KEPT_MS, Recent


def test_a_value_is_kept_for_a_moment() -> None:
    now_ms = [1000]
    recent = Recent(lambda counter=itertools.count(): next(counter), lambda: now_ms[0])
    assert [recent(), recent()] == [0, 0]
    now_ms[0] += KEPT_MS - 1
    assert recent() == 0
    now_ms[0] += 1
    assert recent() == 1

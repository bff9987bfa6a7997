"""Clicks of the demo."""

from __future__ import annotations

import json
from random import Random

from barnabas.pipeline.demo.clicks import BAD_EVERY, PAGES, Clicks


def test_clicks_are_json_but_for_some() -> None:
    clicks = Clicks(Random(7))
    good, bad = [], 0
    for number in range(500):
        key, value = clicks.next(1_700_000_000_123 + number)
        try:
            click = json.loads(value)
        except ValueError:
            bad += 1
            continue
        assert click["user"].encode() == key
        good.append(click)
    assert bad == 500 // BAD_EVERY
    assert {click["page"] for click in good} == set(PAGES)
    assert good[0]["at"] == "2023-11-14T22:13:20.123Z"
    assert all(isinstance(click["took_ms"], int) for click in good)


def test_the_same_seed_gives_the_same_clicks() -> None:
    one, two = Clicks(Random(1)), Clicks(Random(1))
    assert [one.next(0) for _ in range(100)] == [two.next(0) for _ in range(100)]

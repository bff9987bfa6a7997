"""The table of windows that the demo shows."""

from __future__ import annotations

import json

from barnabas.pipeline.demo.windows import WINDOWS_MAX, Windows


def count(second: int, page: str, clicks: int) -> bytes:
    start = f"2026-01-02T03:04:{second:02}.000Z"
    return json.dumps({"window_start": start, "page": page, "clicks": clicks}).encode()


def test_the_last_windows_are_kept_newest_first() -> None:
    windows = Windows()
    for second in range(0, 60, 5):
        windows.add(count(second, "/", 3))
        windows.add(count(second, "/cart", second))
    found = windows.latest()
    assert len(found) == WINDOWS_MAX
    assert windows.seen == 24
    assert found[0].start == "2026-01-02T03:04:55.000Z"
    assert found[0].clicks == {"/": 3, "/cart": 55}
    assert found[0].total == 58

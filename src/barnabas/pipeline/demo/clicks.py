"""Clicks of fictitious visitors, as JSON; now and then one that cannot be parsed.

The same random seed gives the same clicks.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random

PAGES = {"/": 40, "/search": 25, "/product": 20, "/cart": 10, "/checkout": 5}
"""Pages, and their share of a hundred clicks."""

USERS = 500
BAD_EVERY = 50
"""One click in this many is broken."""


class Clicks:
    """An endless supply."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made = 0

    def next(self, now_ms: int) -> tuple[bytes, bytes]:
        """Return the key and the value of a click at a time."""
        random = self._random
        user = f"user-{random.randrange(USERS)}"
        [page] = random.choices(list(PAGES), list(PAGES.values()))
        at = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        click = {
            "user": user,
            "page": page,
            "at": f"{at}Z",
            "took_ms": int(random.lognormvariate(4, 0.7)),
        }
        value = json.dumps(click)
        self._made += 1
        if self._made % BAD_EVERY == 0:
            value = random.choice([value[:-8], value.replace('"took_ms": ', '"took_ms": x')])
        return user.encode(), value.encode()

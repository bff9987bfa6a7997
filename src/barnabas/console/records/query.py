"""What a page of records is asked for, as the parameters of its URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final
from urllib.parse import urlencode

from barnabas.console.records.decoding import AUTO, DECODERS
from barnabas.console.records.filter_language import (
    Filter,
    FilterError,
    Number,
    Text,
    is_number,
    moment_ms,
    parse,
)

LIMIT: Final = 50
LIMIT_MAX: Final = 500
LIMITS: Final = (20, 50, 100, 500)
OFFSET_MAX: Final = 2**63 - 1


class Start(Enum):
    """Where reading begins, and in which direction it goes."""

    NEWEST = "newest"
    OLDEST = "oldest"
    OFFSET = "offset"
    TIME = "time"
    KEY = "key"

    @property
    def forward(self) -> bool:
        return self in (Start.OLDEST, Start.OFFSET, Start.TIME)


class QueryError(ValueError):
    """A parameter that cannot be used; the text names it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A page of records, as asked for."""

    start: Start = Start.NEWEST
    partition: int | None = None
    offset: int = 0
    time: str = ""
    key: str = ""
    text: str = ""
    """The filter, as it was written."""
    key_decoder: str = AUTO
    value_decoder: str = AUTO
    limit: int = LIMIT
    after: str = ""
    """The cursor of the page before."""
    zone: str = "UTC"

    @property
    def filtered(self) -> bool:
        return bool(self.text.strip()) or self.start is Start.KEY

    def tree(self) -> Filter | None:
        """Return the filter; raise FilterError."""
        return parse(self.text)

    def time_ms(self, now_ms: int) -> int:
        """Return the time to begin at; raise QueryError."""
        text = self.time.strip()
        try:
            return moment_ms(Number(text) if is_number(text) else Text(text), now_ms)
        except ValueError:
            raise QueryError(
                f"time={text[:40]!r}: must be a time such as 2026-11-18T12:00:00Z, "
                "milliseconds since 1970, or -15m"
            ) from None

    def parameters(self) -> dict[str, str]:
        """Return the parameters that differ from their defaults."""
        found = {
            "from": self.start.value,
            "partition": "" if self.partition is None else str(self.partition),
            "offset": str(self.offset) if self.start is Start.OFFSET else "0",
            "time": self.time if self.start is Start.TIME else "",
            "key": self.key if self.start is Start.KEY else "",
            "q": self.text,
            "kd": self.key_decoder,
            "vd": self.value_decoder,
            "limit": str(self.limit),
            "after": self.after,
            "tz": self.zone,
        }
        return {name: value for name, value in found.items() if value != _DEFAULTS[name]}

    def url(self, **changes: object) -> str:
        """Return the query of a URL, with some fields changed."""
        parameters = replace(self, **changes).parameters()  # type: ignore[arg-type]
        return "?" + urlencode(parameters) if parameters else "?"


_DEFAULTS: Final = {
    "from": "newest",
    "partition": "",
    "offset": "0",
    "time": "",
    "key": "",
    "q": "",
    "kd": AUTO,
    "vd": AUTO,
    "limit": str(LIMIT),
    "after": "",
    "tz": "UTC",
}


def read_query(given: Mapping[str, str]) -> Query:
    """Return the query of a URL; raise QueryError or FilterError."""
    started = given.get("from", "newest") or "newest"
    try:
        start = Start(started)
    except ValueError:
        must = ", ".join(each.value for each in Start)
        raise QueryError(f"from={started[:40]!r}: must be one of {must}") from None
    decoders = []
    for name in ("kd", "vd"):
        chosen = given.get(name, AUTO) or AUTO
        if chosen not in DECODERS:
            raise QueryError(f"{name}={chosen[:40]!r}: must be one of {', '.join(DECODERS)}")
        decoders.append(chosen)
    partition = given.get("partition", "").strip()
    query = Query(
        start,
        None if partition in ("", "all") else _number("partition", partition, 2**31 - 1),
        _number("offset", given.get("offset", "").strip() or "0", OFFSET_MAX),
        given.get("time", "").strip(),
        given.get("key", ""),
        given.get("q", ""),
        decoders[0],
        decoders[1],
        min(_number("limit", given.get("limit", "") or str(LIMIT), 10**6), LIMIT_MAX) or LIMIT,
        given.get("after", ""),
        given.get("tz", "") or "UTC",
    )
    if start is Start.TIME and not query.after:
        query.time_ms(0)
    query.tree()
    return query


def _number(name: str, text: str, highest: int) -> int:
    digits = text.replace(",", "").replace("\u202f", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19 or int(digits) > highest:
        raise QueryError(f"{name}={text[:40]!r}: must be a whole number of 0 to {highest}")
    return int(digits)


__all__ = ["Filter", "FilterError", "Query", "QueryError", "Start", "read_query"]

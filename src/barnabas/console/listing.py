"""Lists: one description, shown as a page, as JSON or as CSV.

The state of a list is in its address: `?q=` filters, `sort=` and `after=` page through it by the
last row of the page before, so that no list is counted through.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from barnabas.console.context import Context

PAGE_ROWS = 100
EXACT_MAX = 2**53
"""JavaScript reads larger numbers wrongly, so they are texts in JSON."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
FORMATS = (".json", ".csv")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `link` is the key of the address that its cells lead to."""

    key: str
    title: str
    kind: str = "text"
    sorts: bool = False
    link: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its cells are aligned as numbers."""
        return self.kind in ("number", "size", "ms", "exact")


@dataclass(slots=True)
class Listing:
    """A list as it was asked for."""

    title: str
    base: str
    """Its path, without the format."""
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str = ""
    empty: str = "There are none."
    command: str = ""
    intro: str = ""
    q: str = ""
    sort: str = ""
    ascending: bool = True
    after: str = ""
    next: str = ""
    """What `after` is for the next page; empty on the last one."""
    searches: bool = False
    missing: list[str] = field(default_factory=list)
    """What could not be asked."""
    page: str = ""
    """The path of the page that it is a part of, if that is another than its own."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Further filters, as they are in the address."""
    live: bool = False
    """Whether it is updated while it is looked at."""

    @property
    def data_columns(self) -> list[Column]:
        """The columns that files have, too: not those that only lead to forms."""
        return [each for each in self.columns if each.kind != "action"]

    @property
    def query(self) -> str:
        """The query of the same list, from its beginning."""
        return self._query()

    @property
    def first_page(self) -> str:
        """The address of the first page."""
        return (self.page or self.base) + self._query()

    @property
    def next_page(self) -> str:
        """The address of the next page."""
        return (self.page or self.base) + self._query(after=self.next)

    def sorted_by(self, key: str) -> str:
        """Return the address of the list in another order; of its reverse if it is this one."""
        if key == self.sort and self.ascending:
            key = f"-{key}"
        return (self.page or self.base) + self._query(sort=key)

    def _query(self, **changes: str) -> str:
        sort = self.sort if self.ascending else f"-{self.sort}"
        given = {"q": self.q, **self.filters, "sort": sort if self.sort else "", **changes}
        kept = {name: value for name, value in given.items() if value}
        return f"?{urlencode(kept)}" if kept else ""


def page_of(
    rows: Sequence[Row],
    listing: Listing,
    request: Request,
    *,
    name: str = "name",
    default: str = "name",
    page_rows: int = PAGE_ROWS,
) -> None:
    """Sort rows as a request asks, and put one page of them into a list.

    `name` is the key of what names a row; rows of equal value are ordered by it.
    """
    wanted = request.query_params.get("sort", default)
    key = wanted.removeprefix("-")
    if key not in {column.key for column in listing.columns if column.sorts}:
        wanted = key = default
    descending = wanted.startswith("-")
    ordered = sorted(rows, key=lambda row: str(row[name]))
    if key != name:
        ordered.sort(key=lambda row: _comparable(row[key]), reverse=descending)
    elif descending:
        ordered.reverse()
    after = request.query_params.get("after", "")
    start = 0
    if after:
        start = _position_after(ordered, after, name, key, descending)
    whole = request.url.path.endswith(FORMATS)
    shown = ordered[start:] if whole else ordered[start : start + page_rows]
    listing.rows, listing.sort, listing.ascending = shown, key, not descending
    listing.after = after
    if not whole and start + page_rows < len(ordered):
        last = shown[-1]
        listing.next = str(last[name]) if key == name else f"{last[key]}~{last[name]}"


def _position_after(
    ordered: Sequence[Row], after: str, name: str, key: str, descending: bool
) -> int:
    """Return where the rows behind a mark begin, whether its row still exists or not."""
    if key == name:
        behind: Callable[[Row], bool] = lambda row: (  # noqa: E731
            str(row[name]) < after if descending else str(row[name]) > after
        )
    else:
        value, _, last = after.partition("~")
        mark = _comparable(_number(value))

        def behind(row: Row) -> bool:
            own = _comparable(row[key])
            if own == mark:
                return str(row[name]) > last
            return own < mark if descending else own > mark

    return next((at for at, row in enumerate(ordered) if behind(row)), len(ordered))


def _comparable(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, int | float) else (2, str(value))


def _number(text: str) -> Any:
    if text == "None":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def respond(
    context: Context,
    request: Request,
    listing: Listing,
    template: str = "list.html",
    values: Mapping[str, Any] | None = None,
) -> Response:
    """Return a list in the format that its address ends with."""
    if request.url.path.endswith(".json"):
        return JSONResponse(
            {
                "rows": [
                    {column.key: _json(row[column.key]) for column in listing.data_columns}
                    for row in listing.rows
                ],
                "missing": listing.missing,
            }
        )
    if request.url.path.endswith(".csv"):
        return _csv(listing)
    given = {"listing": listing} | dict(values or {})
    return context.templates.page(request, template, given, live="list_live.html")


def _json(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_MAX:
        return str(value)
    if isinstance(value, float) and value != value:
        return None
    return value


def _csv(listing: Listing) -> Response:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.key for column in listing.data_columns])
    for row in listing.rows:
        writer.writerow([csv_cell(row[column.key]) for column in listing.data_columns])
    name = listing.base.strip("/").replace("/", "-").replace("%", "_")
    return Response(
        text.getvalue().encode("utf-8", "replace"),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}.csv"'},
    )


def csv_cell(value: Any) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def both(path: str) -> list[str]:
    """Return the paths of a list in all formats."""
    return [path, *(path + each for each in FORMATS)]

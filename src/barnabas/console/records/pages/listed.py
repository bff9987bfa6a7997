"""The list of a topic's records, and searches in it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.records.browsing import Page
from barnabas.console.records.cursor import CursorError
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.pages.reading import Reading, query_from, small
from barnabas.console.records.query import Query, QueryError
from barnabas.console.records.views import progress_text, row_view
from barnabas.console.segments import segment
from barnabas.console.zone import zone_of


class RecordList:
    """Lists and searches."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def browse(self, request: Request) -> Response:
        """List records, or search for a slice of time."""
        topic = request.path_params["topic"]
        given = request.query_params
        try:
            query = query_from(request)
        except (QueryError, FilterError) as failure:
            return self._reading.rejected(request, topic, failure)
        is_part = "hx-request" in request.headers and bool(query.after)
        have = small(given.get("have", ""), 10_000)
        values: dict[str, Any] = {"stopped": False, "have": have, "page": None, "rows": []}
        if given.get("stop"):
            values |= {"stopped": True, "progress": "Stopped."}
        elif not given.get("blank"):
            try:
                limit = max(query.limit - have, 1)
                page = await self._reading.page(request, topic, query, limit=limit)
            except CursorError as failure:
                return self._reading.rejected(request, topic, failure)
            values |= self._found(request, topic, query, page, have)
        values |= self._reading.frame(request, topic, query)
        if is_part:
            return self._reading.context.templates.page(request, "records/more.html", values)
        return self._reading.context.templates.page(request, "records/list.html", values)

    def _found(
        self, request: Request, topic: str, query: Query, page: Page, have: int
    ) -> dict[str, Any]:
        key, value = self._reading.decoders(self._reading.context.session(request), topic, query)
        zone = zone_of(query.zone)
        rows = [row_view(row, key, value, zone) for row in page.rows]
        have += len(rows)
        base = f"/topics/{segment(topic)}/records"
        after = page.cursor.encode() if page.cursor is not None else ""
        full = have >= query.limit
        return {
            "page": page,
            "rows": rows,
            "have": have,
            "notes": page.notes,
            "finished": page.finished,
            "progress": progress_text(page.search, zone, page.finished) if query.filtered else "",
            "next": base + query.url(after=after) if after else "",
            "more": f"{base}{query.url(after=after)}&have={have}"
            if after and not full and query.filtered
            else "",
            "stop": f"{base}{query.url(after=after)}&stop=1" if after else "",
        }

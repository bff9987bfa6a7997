"""Downloads of what a query finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from barnabas.console.records.cursor import CursorError
from barnabas.console.records.exporting import (
    BYTES_MAX,
    ROWS_MAX,
    csv_lines,
    json_line,
    parquet_file,
    parquet_missing,
)
from barnabas.console.records.pages.reading import (
    Reading,
    attachment,
    file_stem,
    query_of,
)
from barnabas.console.records.query import Query, QueryError
from barnabas.console.records.rows import Row

EXPORT_PAGE: Final = 500


class Downloads:
    """Records as a file."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def export(self, request: Request) -> Response:
        """Download what a query finds."""
        if not self._reading.context.exports:
            raise HTTPException(403, "Exports are off: barnabas.console.export.enable=false.")
        topic = request.path_params["topic"]
        kind = request.url.path.rpartition(".")[2]
        query = replace(query_of(request), after="", limit=EXPORT_PAGE)
        if kind == "parquet":
            missing = parquet_missing()
            if missing is not None:
                raise HTTPException(409, missing)
        pages = self._pages(request, topic, query)
        try:
            # The first page before the response begins: its errors get a status of their own.
            first = await anext(pages)
        except (QueryError, CursorError) as failure:
            raise HTTPException(400, str(failure)) from None
        name = f"{file_stem(topic)}.{kind}"
        if kind == "parquet":
            rows = list(first)
            async for more in pages:
                rows += more
            data = await asyncio.get_running_loop().run_in_executor(
                self._reading.work.executor, parquet_file, topic, rows
            )
            return Response(data, headers=attachment(name))
        write = _json_lines if kind == "jsonl" else _csv
        return StreamingResponse(_written(write, topic, first, pages), headers=attachment(name))

    async def _pages(self, request: Request, topic: str, query: Query) -> AsyncIterator[list[Row]]:
        count = size = 0
        while True:
            page = await self._reading.page(request, topic, query, everything=False)
            rows = [row for row in page.rows if row.is_record][: ROWS_MAX - count]
            count += len(rows)
            size += sum(row.size for row in rows)
            yield rows
            if page.cursor is None or count >= ROWS_MAX or size >= BYTES_MAX:
                return
            if await request.is_disconnected():
                return
            query = replace(query, after=page.cursor.encode())


Write = Callable[[str, list[Row], bool], str]


def _json_lines(topic: str, rows: list[Row], heading: bool) -> str:
    del heading
    return "".join(json_line(topic, row) for row in rows)


def _csv(topic: str, rows: list[Row], heading: bool) -> str:
    return csv_lines(topic, rows, heading=heading)


async def _written(
    write: Write, topic: str, first: list[Row], pages: AsyncIterator[list[Row]]
) -> AsyncIterator[str]:
    yield write(topic, first, True)
    async for rows in pages:
        yield write(topic, rows, False)

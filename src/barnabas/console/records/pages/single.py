"""One record: everything about it, and its bytes."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.records.decoding import DECODERS, Decoder
from barnabas.console.records.pages.reading import (
    Reading,
    attachment,
    file_stem,
    query_of,
    small,
)
from barnabas.console.records.rows import Row
from barnabas.console.records.views import HEADER_SHOWN, facts_of, part_view
from barnabas.console.segments import segment
from barnabas.console.zone import zone_of


class RecordPage:
    """The page of one record."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def record(self, request: Request) -> Response:
        """Show everything about one record."""
        topic = request.path_params["topic"]
        session = self._reading.context.session(request)
        query = query_of(request)
        row = await self._reading.row(session, request)
        zone = zone_of(query.zone)
        whole = request.query_params.get("whole") == "1"
        key, value = self._reading.decoders(session, topic, query)
        parts = [
            part_view("Key", "key", row.key, key(row.key), whole),
            part_view("Value", "value", row.value, value(row.value, row.key), whole),
        ]
        header = Decoder(topic, "header")
        headers = [
            part_view(
                f"Header {name[:200]}", f"header-{number}", data, header(data), False, HEADER_SHOWN
            )
            for number, (name, data) in enumerate(row.headers[:100])
        ]
        base = f"/topics/{segment(topic)}"
        values = {
            "topic": topic,
            "row": row,
            "facts": facts_of(row, zone),
            "parts": parts if row.is_record else [],
            "headers": headers,
            "more_headers": max(0, len(row.headers) - 100),
            "base": f"{base}/records",
            "here": f"{base}/{row.partition}/{row.offset}",
            "query": query,
            "decoders": DECODERS,
            "whole": whole,
            "newer": f"{base}/{row.partition}/{row.last_offset + 1}",
            "older": f"{base}/{row.partition}/{row.offset - 1}" if row.offset > 0 else "",
            "around": f"{base}/records"
            f"?from=offset&partition={row.partition}&offset={max(0, row.offset - 5)}",
        }
        return self._reading.context.templates.page(request, "records/record.html", values)

    async def raw(self, request: Request) -> Response:
        """Download a key, a value or a header as it is."""
        if not self._reading.context.exports:
            raise HTTPException(403, "Downloads are off: barnabas.console.export.enable=false.")
        row = await self._reading.row(self._reading.context.session(request), request)
        part = request.path_params["part"]
        data: bytes | None
        if part == "key":
            data = row.key
        elif part == "value":
            data = row.value
        else:
            number = small(part.removeprefix("header-"), 10**6, -1)
            if not part.startswith("header-") or not 0 <= number < len(row.headers):
                raise HTTPException(404, "There is no such part of a record.")
            data = row.headers[number][1]
        if data is None:
            raise HTTPException(404, f"The {part} of this record is null.")
        name = f"{_file_name(row, request)}-{part}.bin"
        return Response(data, headers=attachment(name))


def _file_name(row: Row, request: Request) -> str:
    return f"{file_stem(request.path_params['topic'])}-{row.partition}-{row.offset}"

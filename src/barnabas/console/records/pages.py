"""The pages about the records of a topic."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from inspect import cleandoc
from textwrap import dedent
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.form import Form
from barnabas.console.records import filter_language
from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import SLICE_S, Browsing, Page, Rests
from barnabas.console.records.cursor import CursorError
from barnabas.console.records.decoding import DECODERS, Decoder
from barnabas.console.records.display import size_text, visible, zone_of
from barnabas.console.records.exporting import (
    BYTES_MAX,
    FORMATS,
    ROWS_MAX,
    csv_lines,
    json_line,
    parquet_file,
    parquet_missing,
    read_json_lines,
)
from barnabas.console.records.filter_evaluation import compile_filter, prune
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.places import PLACES_MAX, PlaceError, fetch_rows, read_places
from barnabas.console.records.query import LIMITS, Query, QueryError, Start, read_query
from barnabas.console.records.rows import Row
from barnabas.console.records.schemas import (
    NO_SCHEMAS,
    TOPICS_MAX,
    SchemaError,
    TopicSchemas,
    schema_of,
)
from barnabas.console.records.sending import (
    FORMATS as PAYLOAD_FORMATS,
)
from barnabas.console.records.sending import (
    Draft,
    SendingError,
    batches_of,
    bring_back,
    choose_partitions,
    encode_drafts,
    is_text,
    read_headers,
    read_payload,
    send_again,
    show_headers,
)
from barnabas.console.records.tailing import News, Tail
from barnabas.console.records.views import (
    HEADER_SHOWN,
    facts_of,
    part_view,
    progress_text,
    row_view,
)
from barnabas.console.records.work import BusyError, Work
from barnabas.console.rendering import segment
from barnabas.console.session import Session
from barnabas.model.errors import BarnabasError, RequestError

STREAMS_MAX: Final = 10
"""Live streams of one session."""
TAIL_ROWS: Final = 100
COLLECT_S: Final = 5.0
EXPORT_PAGE: Final = 500
STREAM_S: Final = 600.0
"""A live stream ends after this time; the browser connects again, with its session."""
KEEP_ALIVE_S: Final = 15.0


def routes(context: Context) -> list[Route]:
    """Return the routes."""
    return RecordPages(context).routes()


class RecordPages:
    """The pages, and what they share: a thread for searches, and the schemas of sessions."""

    def __init__(
        self,
        context: Context,
        work: Work | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._context = context
        self._work = work or Work()
        self._now_ms = now_ms
        self._schemas: OrderedDict[tuple[str, str], TopicSchemas] = OrderedDict()

    def routes(self) -> list[Route]:
        """Return the routes."""
        base = "/topics/{topic:segment}/records"
        record = "/topics/{topic:segment}/{partition:int}/{offset:int}"
        return [
            Route(base, self.browse, methods=["GET"]),
            Route(base + "/live", self.live, methods=["GET"]),
            Route(base + "/events", self.events, methods=["GET"]),
            Route(base + "/produce", self.produce_form, methods=["GET"]),
            Route(base + "/produce", self.produce, methods=["POST"]),
            Route(base + "/send", self.send, methods=["POST"]),
            Route(base + "/import", self.import_form, methods=["GET"]),
            Route(base + "/import", self.import_lines, methods=["POST"]),
            Route(base + "/schemas", self.schemas_page, methods=["GET"]),
            Route(base + "/schemas", self.add_schema, methods=["POST"]),
            *(Route(f"{base}.{each}", self.export, methods=["GET"]) for each in FORMATS),
            Route(record, self.record, methods=["GET"]),
            Route(record + "/{part}.bin", self.raw, methods=["GET"]),
        ]

    async def browse(self, request: Request) -> Response:
        """List records, or search for a slice of time."""
        topic = request.path_params["topic"]
        given = request.query_params
        try:
            query = read_query(given)
        except (QueryError, FilterError) as failure:
            return self._rejected(request, topic, failure)
        is_part = "hx-request" in request.headers and bool(query.after)
        have = _small(given.get("have", ""), 10_000)
        values: dict[str, Any] = {"stopped": False, "have": have, "page": None, "rows": []}
        if given.get("stop"):
            values |= {"stopped": True, "progress": "Stopped."}
        elif not given.get("blank"):
            try:
                limit = max(query.limit - have, 1)
                page = await self._page(request, topic, query, limit=limit)
            except CursorError as failure:
                return self._rejected(request, topic, failure)
            values |= self._found(request, topic, query, page, have)
        values |= self._frame(request, topic, query)
        if is_part:
            return self._context.templates.page(request, "records/more.html", values)
        return self._context.templates.page(request, "records/list.html", values)

    async def _page(
        self,
        request: Request,
        topic: str,
        query: Query,
        *,
        limit: int | None = None,
        slice_s: float = SLICE_S,
        everything: bool = True,
    ) -> Page:
        session = self._context.session(request)
        try:
            async with self._work.turn(session.visitor.principal):
                return await self._browsing(session, topic, query).page(
                    limit=limit, slice_s=slice_s, everything=everything
                )
        except BusyError as failure:
            raise HTTPException(429, str(failure)) from None

    def _browsing(self, session: Session, topic: str, query: Query) -> Browsing:
        key, value = self._decoders(session, topic, query)
        access = TopicAccess(self._context.door, session.visitor, topic)
        return Browsing(access, query, key, value, self._work.executor, self._now_ms)

    def _decoders(self, session: Session, topic: str, query: Query) -> tuple[Decoder, Decoder]:
        schemas = self._schemas.get((session.key, topic), NO_SCHEMAS)
        return (
            Decoder(topic, "key", query.key_decoder, schemas),
            Decoder(topic, "value", query.value_decoder, schemas),
        )

    def _found(
        self, request: Request, topic: str, query: Query, page: Page, have: int
    ) -> dict[str, Any]:
        key, value = self._decoders(self._context.session(request), topic, query)
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

    def _frame(self, request: Request, topic: str, query: Query) -> dict[str, Any]:
        base = f"/topics/{segment(topic)}/records"
        schemas = self._schemas.get((self._context.session(request).key, topic), NO_SCHEMAS)
        first = replace(query, after="")
        return {
            "topic": topic,
            "base": base,
            "query": query,
            "parameters": first.parameters(),
            "starts": [(each.value, _START_TITLES[each]) for each in Start],
            "decoders": DECODERS,
            "limits": LIMITS,
            "formats": FORMATS if self._context.exports else {},
            "exports_max": ROWS_MAX,
            "export_query": first.url(),
            "live": f"{base}/live{first.url()}",
            "here": base + first.url(),
            "command": _command(topic, query),
            "schemas": [(number, schema.name) for number, schema in schemas],
            "error": "",
            "pointer": None,
            "grammar": _GRAMMAR,
        }

    def _rejected(self, request: Request, topic: str, failure: ValueError) -> Response:
        given = request.query_params
        query = Query(text=given.get("q", "")[: filter_language.LENGTH_MAX])
        values = self._frame(request, topic, query) | {
            "rows": [],
            "page": None,
            "have": 0,
            "stopped": False,
            "error": str(failure),
            "pointer": failure.pointer if isinstance(failure, FilterError) else None,
        }
        return self._context.templates.page(request, "records/list.html", values, status=400)

    # One record.

    async def record(self, request: Request) -> Response:
        """Show everything about one record."""
        topic = request.path_params["topic"]
        session = self._context.session(request)
        query = _query_or_400(request)
        row = await self._row(session, request)
        zone = zone_of(query.zone)
        whole = request.query_params.get("whole") == "1"
        key, value = self._decoders(session, topic, query)
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
        return self._context.templates.page(request, "records/record.html", values)

    async def raw(self, request: Request) -> Response:
        """Download a key, a value or a header as it is."""
        if not self._context.exports:
            raise HTTPException(403, "Downloads are off: barnabas.console.export.enable=false.")
        row = await self._row(self._context.session(request), request)
        part = request.path_params["part"]
        data: bytes | None
        if part == "key":
            data = row.key
        elif part == "value":
            data = row.value
        else:
            number = _small(part.removeprefix("header-"), 10**6, -1)
            if not part.startswith("header-") or not 0 <= number < len(row.headers):
                raise HTTPException(404, "There is no such part of a record.")
            data = row.headers[number][1]
        if data is None:
            raise HTTPException(404, f"The {part} of this record is null.")
        name = f"{_file_name(row, request)}-{part}.bin"
        return Response(data, headers=_attachment(name))

    async def _row(self, session: Session, request: Request) -> Row:
        topic = request.path_params["topic"]
        partition, offset = request.path_params["partition"], request.path_params["offset"]
        if partition > 2**31 - 1 or offset > 2**63 - 1:
            raise HTTPException(404, "There is no such offset.")
        access = TopicAccess(self._context.door, session.visitor, topic)
        known = await access.topic()
        if partition not in known.leaders:
            raise HTTPException(404, f"Topic {topic} has no partition {partition}.")
        rows = await fetch_rows(access, [(partition, offset)], self._work.executor)
        row = rows.get((partition, offset))
        if row is None:
            spans = await access.spans([partition])
            low, high = spans.get(partition, (0, 0))
            raise HTTPException(
                404,
                f"There is no record at offset {offset} of partition {partition}: it has offsets "
                f"{low} to {high - 1}, and compaction may have removed some of them.",
            )
        await self._browsing(session, topic, Query()).decide([row])
        return row

    # Live.

    async def live(self, request: Request) -> Response:
        """Show new records as they come."""
        topic = request.path_params["topic"]
        try:
            query = read_query(request.query_params)
        except (QueryError, FilterError) as failure:
            return self._rejected(request, topic, failure)
        values = self._frame(request, topic, query)
        values["events"] = f"{values['base']}/events{replace(query, after='').url()}"
        return self._context.templates.page(request, "records/live.html", values)

    async def events(self, request: Request) -> Response:
        """Stream new records; `Last-Event-ID` goes on where a stream broke."""
        topic = request.path_params["topic"]
        session = self._context.session(request)
        query = _query_or_400(request)
        if session.streams >= STREAMS_MAX:
            raise HTTPException(
                429, f"You have {STREAMS_MAX} live streams already: close one of them."
            )
        access = TopicAccess(self._context.door, session.visitor, topic)
        await access.topic()
        now_ms = self._now_ms()
        tree = query.tree()
        key, value = self._decoders(session, topic, query)
        tail = Tail(
            access,
            query.partition,
            key,
            value,
            compile_filter(tree, now_ms),
            prune(tree, now_ms),
            self._work.executor,
            asyncio.get_running_loop().time,
            Rests(),
        )
        last_id = request.headers.get("last-event-id", "")
        return StreamingResponse(
            self._stream(request, session, topic, query, tail, last_id),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def _stream(
        self,
        request: Request,
        session: Session,
        topic: str,
        query: Query,
        tail: Tail,
        last_id: str,
    ) -> AsyncIterator[str]:
        key, value = self._decoders(session, topic, query)
        zone = zone_of(query.zone)
        shown: list[Row] = []
        left_out = skipped = 0
        loop = asyncio.get_running_loop()
        said_s = 0.0
        end_s = loop.time() + STREAM_S
        session.streams += 1
        try:
            async for news in tail.news(last_id):
                if news.rows or news.left_out or news.skipped or not said_s:
                    shown = (news.rows[::-1] + shown)[:TAIL_ROWS]
                    left_out += news.left_out
                    skipped += news.skipped
                    text = self._context.templates.render(
                        request,
                        "records/live_rows.html",
                        {
                            "topic": topic,
                            "base": f"/topics/{segment(topic)}/records",
                            "rows": [row_view(row, key, value, zone) for row in shown],
                            "left_out": left_out,
                            "skipped": skipped,
                            "rows_max": TAIL_ROWS,
                        },
                    )
                    said_s = loop.time()
                    yield _event(text, news)
                elif loop.time() - said_s > KEEP_ALIVE_S:
                    said_s = loop.time()
                    yield ": nothing new\n\n"
                if loop.time() >= end_s:
                    return
        except BarnabasError as failure:
            text = self._context.templates.render(
                request, "records/live_end.html", {"error": str(failure)}
            )
            yield _event(text, None)
        finally:
            session.streams -= 1

    # Sending.

    async def produce_form(self, request: Request) -> Response:
        """Show the form for a record, filled with another one's content if asked."""
        topic = request.path_params["topic"]
        given = request.query_params
        values: dict[str, Any] = {
            "key": "", "key_format": "text", "value": "", "value_format": "text",
            "headers": "", "partition": "", "count": "1", "target": topic,
        }  # fmt: skip
        note = ""
        if given.get("of"):
            session = self._context.session(request)
            row = await self._chosen_row(session, topic, given["of"])
            values["key"], values["key_format"] = _payload_text(row.key)
            values["value"], values["value_format"] = _payload_text(row.value)
            values["headers"] = show_headers(row.headers)
            note = f"Filled with the record at partition {row.partition}, offset {row.offset}."
            if not is_text(row.headers):
                note += " Headers that are not text would lose bytes: send it again unedited."
        return self._produce_page(request, topic, values, note=note)

    async def _chosen_row(self, session: Session, topic: str, text: str) -> Row:
        try:
            places = read_places([text])
        except PlaceError as failure:
            raise HTTPException(400, str(failure)) from None
        access = TopicAccess(self._context.door, session.visitor, topic)
        row = (await fetch_rows(access, places, self._work.executor)).get(places[0])
        if row is None or not row.is_record:
            raise HTTPException(404, f"There is no record at {text[:40]} any longer.")
        return row

    def _produce_page(
        self,
        request: Request,
        topic: str,
        values: Mapping[str, Any],
        *,
        note: str = "",
        error: str = "",
    ) -> Response:
        return self._context.templates.page(
            request,
            "records/produce.html",
            {
                "topic": topic,
                "base": f"/topics/{segment(topic)}/records",
                "form": values,
                "formats": PAYLOAD_FORMATS,
                "note": note,
                "error": error,
            },
            status=400 if error else 200,
        )

    async def produce(self, request: Request) -> Response:
        """Preview a record, or send it."""
        topic = request.path_params["topic"]
        form = await self._context.form(request)
        names = ("key", "key_format", "value", "value_format", "headers", "partition", "target")
        given = {name: form.get(name) for name in names} | {"count": "1"}
        try:
            key = read_payload("key", form.get("key"), form.get("key_format") or "text")
            value = read_payload("value", form.get("value"), form.get("value_format") or "text")
            headers = read_headers(form.get("headers"))
            partition = _partition(form.get("partition"))
            draft = Draft(
                form.get("target") or topic, partition, key, value, headers, origin="this form"
            )
        except SendingError as failure:
            return self._produce_page(request, topic, given, error=str(failure))
        fields = [(name, form.get(name)) for name in names]
        return await self._planned(request, topic, form, [draft], "produce", fields)

    async def send(self, request: Request) -> Response:
        """Preview sending records again or bringing dead letters back, or do it."""
        topic = request.path_params["topic"]
        form = await self._context.form(request)
        session = self._context.session(request)
        action = form.get("action") or "again"
        try:
            places = read_places(form.all("place"))
            if not places and form.get("all") == "yes":
                places = await self._collect(request, topic, form)
        except (PlaceError, QueryError, FilterError) as failure:
            raise HTTPException(400, str(failure)) from None
        if not places:
            raise HTTPException(400, "No record is selected: tick one in the list, or choose all.")
        access = TopicAccess(self._context.door, session.visitor, topic)
        found = await fetch_rows(access, places, self._work.executor)
        rows = [found[place] for place in places if place in found and found[place].is_record]
        keep = form.get("keep") == "yes"
        try:
            added = read_headers(form.get("headers"))
        except SendingError as failure:
            raise HTTPException(400, str(failure)) from None
        if action == "back":
            drafts = bring_back(rows, topic, keep_partition=keep)
        elif action == "again":
            target = form.get("target").strip() or topic
            drafts = send_again(rows, target, topic, keep_partition=keep)
        else:
            raise HTTPException(400, f"action {action[:20]!r}: must be again or back")
        if added:
            drafts = [replace(each, headers=each.headers + added) for each in drafts]
        for place in places:
            if place not in found:
                drafts.append(
                    Draft(
                        "",
                        None,
                        None,
                        None,
                        origin=f"{topic}-{place[0]} offset {place[1]}",
                        problem="there is no such record any longer",
                    )
                )
        fields = [("action", action), ("target", form.get("target")), ("keep", form.get("keep"))]
        fields.append(("headers", form.get("headers")))
        fields += [("place", f"{partition}:{offset}") for partition, offset in places]
        return await self._planned(request, topic, form, drafts, "send", fields)

    async def _collect(self, request: Request, topic: str, form: Form) -> list[tuple[int, int]]:
        """Return the places of the records that a query finds, as far as limit and time allow."""
        query = replace(read_query(form.prefixed("query-")), after="")
        page = await self._page(
            request, topic, query, limit=PLACES_MAX, slice_s=COLLECT_S, everything=False
        )
        return [(row.partition, row.offset) for row in page.rows if row.is_record]

    async def _planned(
        self,
        request: Request,
        topic: str,
        form: Form,
        drafts: list[Draft],
        action: str,
        fields: list[tuple[str, str]],
    ) -> Response:
        """Show what would be sent; send it if this was confirmed."""
        session = self._context.session(request)
        drafts = await self._with_partitions(session, drafts)
        base = f"/topics/{segment(topic)}/records"
        sendable = [each for each in drafts if not each.problem]
        if form.get("confirmed") == "yes" and sendable:
            results = await self._send_all(session, sendable)
            return self._context.templates.page(
                request,
                "records/sent.html",
                {
                    "topic": topic, "base": base, "results": results,
                    "left_out": [each for each in drafts if each.problem],
                },
            )  # fmt: skip
        targets = sorted({each.topic for each in sendable})
        return self._context.templates.page(
            request,
            "records/preview.html",
            {
                "topic": topic,
                "base": base,
                "action": f"{base}/{action}",
                "fields": fields,
                "drafts": [_draft_view(each) for each in drafts],
                "count": len(sendable),
                "left_out": len(drafts) - len(sendable),
                "size": size_text(sum(each.size for each in sendable)),
                "needs": ", ".join(f"Write on topic {each}" for each in targets),
            },
        )

    async def _with_partitions(self, session: Session, drafts: list[Draft]) -> list[Draft]:
        counts: dict[str, int] = {}
        for name in {each.topic for each in drafts if each.topic and not each.problem}:
            try:
                found = await TopicAccess(self._context.door, session.visitor, name).topic()
            except RequestError:
                continue  # the plan says which drafts have no topic
            counts[name] = len(found.leaders)
        return choose_partitions(drafts, counts)

    async def _send_all(self, session: Session, drafts: list[Draft]) -> list[dict[str, Any]]:
        """Send batch by batch; one that fails does not stop those of other partitions."""
        accesses: dict[str, TopicAccess] = {}
        results = []
        failed: set[tuple[str, int]] = set()
        for name, partition, batch in batches_of(drafts):
            result: dict[str, Any] = {
                "topic": name, "partition": partition, "count": len(batch), "href": "",
                "offset": None, "error": "",
            }  # fmt: skip
            results.append(result)
            if (name, partition) in failed:
                # Sending on would change the order of the records.
                result["error"] = "not sent, because the batch before it failed"
                continue
            access = accesses.setdefault(
                name, TopicAccess(self._context.door, session.visitor, name)
            )
            try:
                offset = await access.produce(partition, encode_drafts(batch, self._now_ms()))
            except BarnabasError as failure:
                failed.add((name, partition))
                result["error"] = str(failure)
                continue
            result["offset"] = offset
            result["href"] = f"/topics/{segment(name)}/{partition}/{offset}"
        return results

    # Files.

    async def export(self, request: Request) -> Response:
        """Download what a query finds."""
        if not self._context.exports:
            raise HTTPException(403, "Exports are off: barnabas.console.export.enable=false.")
        topic = request.path_params["topic"]
        kind = request.url.path.rpartition(".")[2]
        query = replace(_query_or_400(request), after="", limit=EXPORT_PAGE)
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
        name = f"{_file_stem(topic)}.{kind}"
        if kind == "parquet":
            rows = list(first)
            async for more in pages:
                rows += more
            data = await asyncio.get_running_loop().run_in_executor(
                self._work.executor, parquet_file, topic, rows
            )
            return Response(data, headers=_attachment(name))
        write = _json_lines if kind == "jsonl" else _csv
        return StreamingResponse(_written(write, topic, first, pages), headers=_attachment(name))

    async def _pages(self, request: Request, topic: str, query: Query) -> AsyncIterator[list[Row]]:
        count = size = 0
        while True:
            page = await self._page(request, topic, query, everything=False)
            rows = [row for row in page.rows if row.is_record][: ROWS_MAX - count]
            count += len(rows)
            size += sum(row.size for row in rows)
            yield rows
            if page.cursor is None or count >= ROWS_MAX or size >= BYTES_MAX:
                return
            if await request.is_disconnected():
                return
            query = replace(query, after=page.cursor.encode())

    async def import_form(self, request: Request) -> Response:
        """Show the form for lines of JSON."""
        return self._import_page(request, request.path_params["topic"], "", "")

    def _import_page(self, request: Request, topic: str, lines: str, error: str) -> Response:
        return self._context.templates.page(
            request,
            "records/import.html",
            {
                "topic": topic,
                "base": f"/topics/{segment(topic)}/records",
                "lines": lines,
                "error": error,
                "records_max": PLACES_MAX,
            },
            status=400 if error else 200,
        )

    async def import_lines(self, request: Request) -> Response:
        """Preview lines of JSON, or send them."""
        topic = request.path_params["topic"]
        form = await self._context.form(request)
        lines, keep = form.get("lines"), form.get("keep")
        try:
            drafts = read_json_lines(lines, topic, keep_partition=keep == "yes")
        except SendingError as failure:
            return self._import_page(request, topic, lines, str(failure))
        fields = [("lines", lines), ("keep", keep)]
        return await self._planned(request, topic, form, drafts, "import", fields)

    # Schemas.

    async def schemas_page(self, request: Request) -> Response:
        """Show the schemas of this session for a topic."""
        return self._schemas_page(request, request.path_params["topic"], {}, "")

    def _schemas_page(
        self, request: Request, topic: str, given: Mapping[str, str], error: str
    ) -> Response:
        key = self._context.session(request).key, topic
        schemas = self._schemas.get(key, NO_SCHEMAS)
        return self._context.templates.page(
            request,
            "records/schemas.html",
            {
                "topic": topic,
                "base": f"/topics/{segment(topic)}/records",
                "schemas": [(number, schema.name) for number, schema in schemas],
                "form": {"schema": "", "id": "", "side": "value", "message": ""} | dict(given),
                "error": error,
            },
            status=400 if error else 200,
        )

    async def add_schema(self, request: Request) -> Response:
        """Keep a schema for this session."""
        topic = request.path_params["topic"]
        form = await self._context.form(request)
        session = self._context.session(request)
        await TopicAccess(self._context.door, session.visitor, topic).topic()
        given = {name: form.get(name) for name in ("schema", "id", "side", "message")}
        try:
            number = None
            if given["id"].strip():
                number = _small(given["id"].strip(), 2**32, -1)
            side = given["side"] if given["side"] in ("key", "value") else "value"
            schema = await asyncio.get_running_loop().run_in_executor(
                self._work.executor, schema_of, given["schema"], given["message"]
            )
            schemas = self._schemas.setdefault((session.key, topic), TopicSchemas())
            schemas.add(schema, number, side)
        except SchemaError as failure:
            return self._schemas_page(request, topic, given, str(failure))
        self._schemas.move_to_end((session.key, topic))
        while len(self._schemas) > TOPICS_MAX:
            self._schemas.popitem(last=False)
        return RedirectResponse(f"/topics/{segment(topic)}/records/schemas", 303)


# The examples in the docstring; without docstrings (python -OO) the page has none.
_GRAMMAR: Final = dedent("".join(cleandoc(filter_language.__doc__ or "").split("\n\n")[1:2]))
_START_TITLES: Final = {
    Start.NEWEST: "newest first",
    Start.OLDEST: "oldest first",
    Start.OFFSET: "from an offset",
    Start.TIME: "from a time",
    Start.KEY: "of one key, newest first",
}


def _command(topic: str, query: Query) -> str:
    """Return the command that prints about the same."""
    words = ["barnabas", "consume", topic, "--json"]
    if query.partition is not None:
        words += ["--partition", str(query.partition)]
    if query.start is Start.OLDEST:
        words += ["--from", "beginning", "--exit-at-end"]
    elif query.start is Start.TIME and query.time:
        words += ["--from", query.time.removeprefix("-")]
    return shlex.join(words)


def _query_or_400(request: Request) -> Query:
    try:
        return read_query(request.query_params)
    except (QueryError, FilterError) as failure:
        raise HTTPException(400, str(failure)) from None


def _small(text: str, highest: int, default: int = 0) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        return default
    return min(int(text), highest)


def _partition(text: str) -> int | None:
    stripped = text.strip()
    if not stripped:
        return None
    number = _small(stripped, 2**31, -1)
    if number < 0:
        raise SendingError(f"partition {stripped[:20]!r}: must be a whole number, or empty")
    return number


def _payload_text(data: bytes | None) -> tuple[str, str]:
    """Return bytes as a form can hold them without loss, and their format."""
    if data is None:
        return "", "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex(" "), "hex"
    # Browsers change line ends, and drop what they cannot hold.
    if "\r" in text or visible(text) != text:
        return data.hex(" "), "hex"
    return text, "text"


def _draft_view(draft: Draft) -> dict[str, Any]:
    decoder = Decoder(draft.topic, "value")
    key, value = decoder(draft.key), decoder(draft.value)
    return {
        "topic": draft.topic,
        "partition": draft.partition,
        "key": "null" if draft.key is None else (key.text or "")[:120],
        "value": "null" if draft.value is None else (value.text or "")[:200],
        "headers": ", ".join(name for name, _ in draft.headers)[:200],
        "size": size_text(draft.size),
        "origin": draft.origin,
        "problem": draft.problem,
    }


def _event(text: str, news: News | None) -> str:
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    head = f"id: {news.position}\n" if news is not None else ""
    return f"{head}{lines}\n"


def _attachment(name: str) -> dict[str, str]:
    return {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
    }


def _file_stem(topic: str) -> str:
    """Return a name for a file: topics have few characters, but this may be any text."""
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in topic
    )
    return kept[:100].lstrip(".") or "records"


def _file_name(row: Row, request: Request) -> str:
    return f"{_file_stem(request.path_params['topic'])}-{row.partition}-{row.offset}"


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

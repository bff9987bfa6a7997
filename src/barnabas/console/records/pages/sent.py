"""Records that are sent: new ones, some again, dead letters back, lines of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.form import Form
from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.display import size_text, visible
from barnabas.console.records.exporting import read_json_lines
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.pages.reading import COLLECT_S, Reading, small
from barnabas.console.records.places import PLACES_MAX, PlaceError, fetch_rows, read_places
from barnabas.console.records.query import QueryError, read_query
from barnabas.console.records.rows import Row
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
from barnabas.console.segments import segment
from barnabas.console.session import Session
from barnabas.model.errors import BarnabasError, RequestError


class SendingPages:
    """Plans of what is sent, and the sending."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

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
            session = self._reading.context.session(request)
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
        access = TopicAccess(self._reading.context.door, session.visitor, topic)
        row = (await fetch_rows(access, places, self._reading.work.executor)).get(places[0])
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
        return self._reading.context.templates.page(
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
        form = await self._reading.context.form(request)
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
        form = await self._reading.context.form(request)
        session = self._reading.context.session(request)
        action = form.get("action") or "again"
        try:
            places = read_places(form.all("place"))
            if not places and form.get("all") == "yes":
                places = await self._collect(request, topic, form)
        except (PlaceError, QueryError, FilterError) as failure:
            raise HTTPException(400, str(failure)) from None
        if not places:
            raise HTTPException(400, "No record is selected: tick one in the list, or choose all.")
        access = TopicAccess(self._reading.context.door, session.visitor, topic)
        found = await fetch_rows(access, places, self._reading.work.executor)
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
        page = await self._reading.page(
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
        session = self._reading.context.session(request)
        drafts = await self._with_partitions(session, drafts)
        base = f"/topics/{segment(topic)}/records"
        sendable = [each for each in drafts if not each.problem]
        if form.get("confirmed") == "yes" and sendable:
            results = await self._send_all(session, sendable)
            return self._reading.context.templates.page(
                request,
                "records/sent.html",
                {
                    "topic": topic, "base": base, "results": results,
                    "left_out": [each for each in drafts if each.problem],
                },
                status=409 if any(each["error"] for each in results) else 200,
            )  # fmt: skip
        targets = sorted({each.topic for each in sendable})
        return self._reading.context.templates.page(
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
                "needs": ", ".join(f"WRITE on topic {each}" for each in targets),
            },
            status=409 if form.get("confirmed") == "yes" else 200,
        )

    async def _with_partitions(self, session: Session, drafts: list[Draft]) -> list[Draft]:
        counts: dict[str, int] = {}
        for name in {each.topic for each in drafts if each.topic and not each.problem}:
            try:
                found = await TopicAccess(self._reading.context.door, session.visitor, name).topic()
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
                name, TopicAccess(self._reading.context.door, session.visitor, name)
            )
            try:
                offset = await access.produce(
                    partition, encode_drafts(batch, self._reading.now_ms())
                )
            except BarnabasError as failure:
                failed.add((name, partition))
                result["error"] = str(failure)
                continue
            result["offset"] = offset
            result["href"] = f"/topics/{segment(name)}/{partition}/{offset}"
        return results

    async def import_form(self, request: Request) -> Response:
        """Show the form for lines of JSON."""
        return self._import_page(request, request.path_params["topic"], "", "")

    def _import_page(self, request: Request, topic: str, lines: str, error: str) -> Response:
        return self._reading.context.templates.page(
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
        form = await self._reading.context.form(request)
        lines, keep = form.get("lines"), form.get("keep")
        try:
            drafts = read_json_lines(lines, topic, keep_partition=keep == "yes")
        except SendingError as failure:
            return self._import_page(request, topic, lines, str(failure))
        fields = [("lines", lines), ("keep", keep)]
        return await self._planned(request, topic, form, drafts, "import", fields)


def _partition(text: str) -> int | None:
    stripped = text.strip()
    if not stripped:
        return None
    number = small(stripped, 2**31, -1)
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

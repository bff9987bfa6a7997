"""What the pages about records share: searches, the schemas of sessions, what frames a list."""

from __future__ import annotations

import shlex
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from inspect import cleandoc
from textwrap import dedent
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.context import Context
from barnabas.console.records import filter_language
from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import SLICE_S, Browsing, Page
from barnabas.console.records.decoding import DECODERS, Decoder
from barnabas.console.records.exporting import FORMATS, ROWS_MAX
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.places import fetch_rows
from barnabas.console.records.query import LIMITS, Query, QueryError, Start, read_query
from barnabas.console.records.rows import Row
from barnabas.console.records.schemas import NO_SCHEMAS, TopicSchemas
from barnabas.console.records.work import BusyError, Work
from barnabas.console.segments import segment
from barnabas.console.session import Session
from barnabas.console.zone import zone_name

COLLECT_S: Final = 5.0
"""How long records are looked for that are all to be sent."""


class Reading:
    """A thread for searches, the schemas of sessions, and what is done with them."""

    def __init__(
        self,
        context: Context,
        work: Work | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.context = context
        self.work = work or Work()
        self.now_ms = now_ms
        self.schemas: OrderedDict[tuple[str, str], TopicSchemas] = OrderedDict()

    async def page(
        self,
        request: Request,
        topic: str,
        query: Query,
        *,
        limit: int | None = None,
        slice_s: float = SLICE_S,
        everything: bool = True,
    ) -> Page:
        """Return one page of what a query finds; raise HTTPException(429)."""
        session = self.context.session(request)
        try:
            async with self.work.turn(session.visitor.principal):
                return await self.browsing(session, topic, query).page(
                    limit=limit, slice_s=slice_s, everything=everything
                )
        except BusyError as failure:
            raise HTTPException(429, str(failure)) from None

    def browsing(self, session: Session, topic: str, query: Query) -> Browsing:
        """Return what reads the pages of a query."""
        key, value = self.decoders(session, topic, query)
        access = TopicAccess(self.context.door, session.visitor, topic)
        return Browsing(access, query, key, value, self.work.executor, self.now_ms)

    def decoders(self, session: Session, topic: str, query: Query) -> tuple[Decoder, Decoder]:
        """Return the decoders of keys and of values."""
        schemas = self.schemas.get((session.key, topic), NO_SCHEMAS)
        return (
            Decoder(topic, "key", query.key_decoder, schemas),
            Decoder(topic, "value", query.value_decoder, schemas),
        )

    def frame(self, request: Request, topic: str, query: Query) -> dict[str, Any]:
        """Return what a page about the records of a topic shows around them."""
        base = f"/topics/{segment(topic)}/records"
        schemas = self.schemas.get((self.context.session(request).key, topic), NO_SCHEMAS)
        first = replace(query, after="")
        return {
            "topic": topic,
            "base": base,
            "query": query,
            "parameters": first.parameters(),
            "starts": [(each.value, _START_TITLES[each]) for each in Start],
            "decoders": DECODERS,
            "limits": LIMITS,
            "formats": FORMATS if self.context.exports else {},
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

    def rejected(self, request: Request, topic: str, failure: ValueError) -> Response:
        """Return the page that says what is wrong with a query."""
        given = request.query_params
        query = Query(text=given.get("q", "")[: filter_language.LENGTH_MAX])
        values = self.frame(request, topic, query) | {
            "rows": [],
            "page": None,
            "have": 0,
            "stopped": False,
            "error": str(failure),
            "pointer": failure.pointer if isinstance(failure, FilterError) else None,
        }
        return self.context.templates.page(request, "records/list.html", values, status=400)

    async def row(self, session: Session, request: Request) -> Row:
        """Return the record of an address; raise HTTPException(404)."""
        topic = request.path_params["topic"]
        partition, offset = request.path_params["partition"], request.path_params["offset"]
        if partition > 2**31 - 1 or offset > 2**63 - 1:
            raise HTTPException(404, "There is no such offset.")
        access = TopicAccess(self.context.door, session.visitor, topic)
        known = await access.topic()
        if partition not in known.leaders:
            raise HTTPException(404, f"Topic {topic} has no partition {partition}.")
        rows = await fetch_rows(access, [(partition, offset)], self.work.executor)
        row = rows.get((partition, offset))
        if row is None:
            spans = await access.spans([partition])
            low, high = spans.get(partition, (0, 0))
            raise HTTPException(
                404,
                f"There is no record at offset {offset} of partition {partition}: it has offsets "
                f"{low} to {high - 1}, and compaction may have removed some of them.",
            )
        await self.browsing(session, topic, Query()).decide([row])
        return row


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


def query_from(request: Request) -> Query:
    """Return the query of an address, with the viewer's zone; raise QueryError or FilterError."""
    query = read_query(request.query_params)
    return query if request.query_params.get("tz") else replace(query, zone=zone_name(request))


def query_of(request: Request) -> Query:
    """Return the query of an address; raise HTTPException(400)."""
    try:
        return query_from(request)
    except (QueryError, FilterError) as failure:
        raise HTTPException(400, str(failure)) from None


def small(text: str, highest: int, default: int = 0) -> int:
    """Return a whole number from an address or a form, at most the highest allowed one."""
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        return default
    return min(int(text), highest)


def attachment(name: str) -> dict[str, str]:
    """Return the headers of a download."""
    return {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
    }


def file_stem(topic: str) -> str:
    """Return a name for a file: topics have few characters, but this may be any text."""
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in topic
    )
    return kept[:100].lstrip(".") or "records"

"""The pages about the records of a topic."""

from __future__ import annotations

from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.records.exporting import FORMATS
from barnabas.console.records.pages.exported import Downloads
from barnabas.console.records.pages.listed import RecordList
from barnabas.console.records.pages.live import LiveRecords
from barnabas.console.records.pages.reading import Reading
from barnabas.console.records.pages.schemas import SchemaPages
from barnabas.console.records.pages.sent import SendingPages
from barnabas.console.records.pages.single import RecordPage


def routes(context: Context) -> list[Route]:
    """Return the routes."""
    reading = Reading(context)
    listed, single, live = RecordList(reading), RecordPage(reading), LiveRecords(reading)
    sent, exported, schemas = SendingPages(reading), Downloads(reading), SchemaPages(reading)
    base = "/topics/{topic:segment}/records"
    record = "/topics/{topic:segment}/{partition:int}/{offset:int}"
    return [
        Route(base, listed.browse, methods=["GET"]),
        Route(base + "/live", live.live, methods=["GET"]),
        Route(base + "/events", live.events, methods=["GET"]),
        Route(base + "/produce", sent.produce_form, methods=["GET"]),
        Route(base + "/produce", sent.produce, methods=["POST"]),
        Route(base + "/send", sent.send, methods=["POST"]),
        Route(base + "/import", sent.import_form, methods=["GET"]),
        Route(base + "/import", sent.import_lines, methods=["POST"]),
        Route(base + "/schemas", schemas.schemas_page, methods=["GET"]),
        Route(base + "/schemas", schemas.add_schema, methods=["POST"]),
        *(Route(f"{base}.{each}", exported.export, methods=["GET"]) for each in FORMATS),
        Route(record, single.record, methods=["GET"]),
        Route(record + "/{part}.bin", single.raw, methods=["GET"]),
    ]

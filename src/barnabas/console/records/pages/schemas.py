"""The schemas that a session has for a topic's records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.pages.reading import Reading, small
from barnabas.console.records.schemas import (
    NO_SCHEMAS,
    TOPICS_MAX,
    SchemaError,
    TopicSchemas,
    schema_of,
)
from barnabas.console.segments import segment


class SchemaPages:
    """The list of schemas, and a new one."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def schemas_page(self, request: Request) -> Response:
        """Show the schemas of this session for a topic."""
        return self._schemas_page(request, request.path_params["topic"], {}, "")

    def _schemas_page(
        self, request: Request, topic: str, given: Mapping[str, str], error: str
    ) -> Response:
        key = self._reading.context.session(request).key, topic
        schemas = self._reading.schemas.get(key, NO_SCHEMAS)
        return self._reading.context.templates.page(
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
        form = await self._reading.context.form(request)
        session = self._reading.context.session(request)
        await TopicAccess(self._reading.context.door, session.visitor, topic).topic()
        given = {name: form.get(name) for name in ("schema", "id", "side", "message")}
        try:
            number = None
            if given["id"].strip():
                number = small(given["id"].strip(), 2**32, -1)
            side = given["side"] if given["side"] in ("key", "value") else "value"
            schema = await asyncio.get_running_loop().run_in_executor(
                self._reading.work.executor, schema_of, given["schema"], given["message"]
            )
            schemas = self._reading.schemas.setdefault((session.key, topic), TopicSchemas())
            schemas.add(schema, number, side)
        except SchemaError as failure:
            return self._schemas_page(request, topic, given, str(failure))
        self._reading.schemas.move_to_end((session.key, topic))
        while len(self._reading.schemas) > TOPICS_MAX:
            self._reading.schemas.popitem(last=False)
        return RedirectResponse(f"/topics/{segment(topic)}/records/schemas", 303)

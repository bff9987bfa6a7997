"""Why something is as it is: its present state with reasons, and what the diary says about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.present_state import (
    broker_texts,
    client_state,
    group_state,
    partition_state,
    topic_state,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.context import Context
from barnabas.console.pages.diary import missing_text
from barnabas.console.pages.overview import sees_broker
from barnabas.console.pages.topic import failing
from barnabas.console.window import Diary, DiaryEntry
from barnabas.diary.concerns import (
    Concerns,
    about_broker,
    about_client,
    about_group,
    about_partition,
    about_topic,
)
from barnabas.diary.entry import Entry
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.ids import TopicPartition

ENTRIES_MAX = 100
NAME_MAX = 1000
KINDS = ("group", "partition", "topic", "broker", "client")

State = Callable[[ClusterClient, list[Entry]], Awaitable[list[str]]]


class Question(NamedTuple):
    """What is asked: which entries are about it, and what its present state is."""

    concerns: Concerns
    state: State


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def why(request: Request) -> Response:
        kind = request.query_params.get("of", "")
        name = request.query_params.get("name", "").strip()
        values: dict[str, object] = {
            "kinds": KINDS,
            "kind": kind,
            "name": name,
            "state": None,
            "failed": "",
            "entries": (),
            "missing": "",
            "sees_diary": sees_broker(context, request),
        }
        if name:
            question = question_of(context, kind, name[:NAME_MAX])
            client = context.session(request).client
            # No request that describes one of these could deny it.
            if kind in ("broker", "client") and not values["sees_diary"]:
                raise HTTPException(403, "This needs DESCRIBE on the cluster.")
            found = await context.window.diary(ENTRIES_MAX, question.concerns)
            entries = [_entry(each) for each in found.entries]
            state = await failing(question.state(client, entries))
            if isinstance(state, BarnabasError):
                values["failed"] = str(state)
                if not values["sees_diary"]:
                    found = Diary(())  # what may not be described has no history either
            else:
                values["state"] = state
            values["entries"] = found.entries
            values["missing"] = missing_text(found) if found.missing else ""
        return context.templates.page(request, "why.html", values)

    return [Route("/why", why)]


def question_of(context: Context, kind: str, name: str) -> Question:
    """Return what is asked about something; raise HTTPException(400)."""
    if kind == "group":
        return Question(about_group(name), lambda client, found: group_state(client, name, found))
    if kind == "topic":
        return Question(about_topic(name), lambda client, found: topic_state(client, name, found))
    if kind == "client":
        return Question(about_client(name), lambda client, found: client_state(client, name, found))
    if kind == "broker":
        broker_id = _index(name, "A broker is named by its id, such as 2.")
        return Question(
            about_broker(broker_id), lambda client, found: state_of_broker(context, broker_id)
        )
    if kind == "partition":
        topic, _, number = name.rpartition("-")
        wrong = "A partition is written TOPIC-N, such as orders-3."
        if not topic:
            raise HTTPException(400, wrong)
        key = TopicPartition(topic, _index(number, wrong))
        return Question(
            about_partition(*key), lambda client, found: partition_state(client, key, found)
        )
    raise HTTPException(400, f"of: {kind[:40]!r} must be one of {', '.join(KINDS)}.")


async def state_of_broker(context: Context, broker_id: int) -> list[str]:
    """Return the state of a broker in sentences; raise InvalidValueError if there is none."""
    alive = {each.broker_id: each for each in context.window.brokers()}
    seen = await context.window.replicas_of(broker_id)
    found = alive.get(broker_id)
    if found is None and not seen.held:
        ids = ", ".join(map(str, sorted(alive)))
        raise InvalidValueError(f"no broker {broker_id}; alive are {ids}")
    return broker_texts(
        "" if found is None else f"{found.host}:{found.port}",
        seen.held,
        seen.led,
        seen.lagging,
        seen.leaderless,
        is_controller=found is not None and found.is_controller,
    )


def _index(text: str, wrong: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise HTTPException(400, wrong)
    return int(text)


def _entry(seen: DiaryEntry) -> Entry:
    return Entry(
        0,
        seen.broker,
        seen.time_ms,
        seen.event,
        seen.subject,
        seen.cause,
        dict(seen.data),
        seen.count,
        seen.time_ms,
    )

"""Quotas, with what each broker measures of the clients that they concern."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.quotas import (
    QuotaAlteration,
    QuotaUsage,
    alter_client_quotas,
    describe_client_quotas,
    describe_quota_usage,
)
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.door import Mode
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.topic import failing
from barnabas.model.errors import BarnabasError, RequestError

ASK_MS = 3_000
KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
KINDS = ("user", "client-id", "ip")

COLUMNS = (
    Column("entity", "Who", sorts=True),
    Column("key", "Quota", sorts=True),
    Column("limit", "Limit", "number", sorts=True),
    Column("used", "Used", "number", sorts=True),
    Column("share", "Share"),
    Column("broker", "At broker", "number", sorts=True),
    Column("throttle_ms", "Throttled for", "ms", sorts=True),
)
CHANGE = Column("change", "Change", "action", link="change_href")


def routes(context: Context) -> list[Route]:
    """Return the routes."""
    columns = (*COLUMNS, CHANGE) if context.door.mode is Mode.FULL else COLUMNS

    async def quotas(request: Request) -> Response:
        client = context.session(request).client
        alive = [each.broker_id for each in context.window.brokers()]
        found, usage = await asyncio.gather(
            failing(describe_client_quotas(client)),
            failing(describe_quota_usage(client, alive, timeout_ms=ASK_MS)),
        )
        rows: list[Row] = []
        missing = []
        measured: dict[int, list[QuotaUsage]] = {}
        if isinstance(usage, BarnabasError):
            missing.append(f"What is used is not known: {usage}")
        else:
            for broker_id, each in usage.items():
                if isinstance(each, RequestError):
                    missing.append(f"Broker {broker_id} did not say what is used: {each}")
                else:
                    measured[broker_id] = each
        if isinstance(found, BarnabasError):
            missing = [str(found)]
        else:
            limits = {
                (_entity(each.entity), key): (each.entity, limit)
                for each in found
                for key, limit in each.values.items()
            }
            rows = _rows(limits, measured)
        listing = Listing(
            "Quotas",
            "/quotas",
            columns,
            rows,
            intro="Each broker applies a quota by itself, to all clients of a user or a client id "
            "together.",
            caption="Limits, and what brokers measure of the clients that have them",
            command="barnabas quotas list",
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request, name="id", default="id")
        given = {
            name: request.query_params.get(name, "")
            for name in (*KINDS, *(f"default-{each}" for each in KINDS), "key", "value")
        }
        return respond(
            context,
            request,
            listing,
            "quotas.html",
            {"keys": KEYS, "kinds": KINDS, "given": given},
        )

    async def set_quota(request: Request) -> Response:
        form = await context.form(request)
        entity: dict[str, str | None] = {}
        for kind in KINDS:
            if form.get(f"default-{kind}") == "yes":
                entity[kind] = None
            elif form.get(kind):
                entity[kind] = form.get(kind)
        if not entity:
            raise HTTPException(400, "A quota needs a user, a client id or an address.")
        key, text = form.get("key"), form.get("value").strip()
        value = _limit(key, text)
        if form.get("confirmed") == "yes":
            outcomes = await alter_client_quotas(
                context.session(request).client, [QuotaAlteration(entity, {key: value})]
            )
            results = [(_entity(each.entity), each.error) for each in outcomes]
            return report(context, request, "Quotas", results, "/quotas", done="changed")
        fields = [(name, given) for name, given in form.fields if name != "_token"]
        plan = Plan(
            title="Change a quota",
            text="It takes effect at once, for each broker by itself.",
            button="Change it",
            action="/quotas/set",
            back="/quotas",
            fields=fields,
            heads=["Who", "Quota", "Limit"],
            rows=[[_entity(entity), key, "none" if value is None else value]],
            needs="ALTER_CONFIGS on the cluster",
            command=_command(entity, key, text),
        )
        return ask(context, request, plan)

    return [
        *(Route(path, lively(context, quotas), methods=["GET"]) for path in both("/quotas")),
        Route("/quotas/set", set_quota, methods=["POST"]),
    ]


def _rows(
    limits: Mapping[tuple[str, str], tuple[Mapping[str, str | None], float]],
    measured: Mapping[int, list[QuotaUsage]],
) -> list[Row]:
    """Return a row for each client or limit at each broker that measures it, and for the rest."""
    rows = []
    seen = set()
    for broker_id, usages in measured.items():
        for each in usages:
            who = _entity(each.entity), each.key
            seen.add(who)
            limit = limits[who][1] if who in limits else each.limit
            if limit is not None:
                rows.append(_row(each.entity, each.key, limit, broker_id, each))
    rows += [
        _row(entity, key, limit, None, None)
        for (who, key), (entity, limit) in limits.items()
        if (who, key) not in seen
    ]
    return rows


def _row(
    entity: Mapping[str, str | None],
    key: str,
    limit: float | None,
    broker_id: int | None,
    usage: QuotaUsage | None,
) -> Row:
    used = None if usage is None else usage.rate
    given = {
        name: value
        for kind, each in entity.items()
        for name, value in ([(f"default-{kind}", "yes")] if each is None else [(kind, each)])
    }
    query = urlencode(given | {"key": key, "value": f"{limit or 0:g}"}, errors="replace")
    return {
        "id": f"{_entity(entity)} {key} {'' if broker_id is None else broker_id}",
        "entity": _entity(entity),
        "key": key,
        "limit": limit,
        "used": used,
        "share": f"{used / limit:.0%}" if used is not None and limit else "",
        "broker": broker_id,
        "throttle_ms": None if usage is None else usage.throttle_time_ms,
        "level": "warn" if usage is not None and usage.throttle_time_ms > 0 else "",
        "change": "Change",
        "change_href": f"/quotas?{query}#change",
    }


def _limit(key: str, text: str) -> float | None:
    """Return a limit as typed, None for none; raise HTTPException(400)."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise HTTPException(400, f"{key}: {text!r} is not a number.")
    return value


def _command(entity: Mapping[str, str | None], key: str, text: str) -> str:
    words = ["barnabas", "quotas", "set" if text else "remove", f"{key}={text}" if text else key]
    for kind, name in entity.items():
        words += [f"--default-{kind}"] if name is None else [f"--{kind}", name]
    return shlex.join(words)


def _entity(entity: Mapping[str, str | None]) -> str:
    """Return the entity of a quota as text."""
    return ", ".join(
        f"{kind} {name if name is not None else '(default)'}"
        for kind, name in sorted(entity.items())
    )

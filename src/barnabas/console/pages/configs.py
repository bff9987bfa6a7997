"""Options of brokers, the cluster, topics, groups and client metrics: sources, changes."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs, describe_configs
from barnabas.console.actions import Plan, ask
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond

KINDS = {
    "broker": ConfigResourceType.BROKER,
    "cluster": ConfigResourceType.BROKER,
    "topic": ConfigResourceType.TOPIC,
    "group": ConfigResourceType.GROUP,
    "loggers": ConfigResourceType.BROKER_LOGGER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
COLUMNS = (
    Column("name", "Option", sorts=True),
    Column("value", "Value"),
    Column("source", "Source", sorts=True),
    Column("changes", "Changes"),
    Column("doc", "Meaning"),
)
OPTIONS_MAX = 1000


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def configs(request: Request) -> Response:
        kind = request.query_params.get("type", "broker")
        name = request.query_params.get("name", "")
        if kind == "broker" and not name:
            name = str(context.door.broker_id)
        q = request.query_params.get("q", "")
        client = context.session(request).client
        entries = await describe_configs(client, resource_of(kind, name), documentation=True)
        rows: list[Row] = [
            {
                "name": each.name,
                "value": "[hidden]" if each.sensitive else each.value,
                "source": each.source.name.lower(),
                "changes": "at a restart" if each.read_only else "at once",
                "doc": each.documentation or "",
            }
            for each in entries
            if q.lower() in each.name.lower()
        ]
        listing = Listing(
            "Configs",
            "/configs",
            COLUMNS,
            rows,
            caption=f"{len(rows):,} options of {kind} {name}",
            command=f"barnabas configs describe {flag_of(kind, name)} --all",
            q=q,
            filters={"type": kind, "name": name},
        )
        page_of(rows, listing, request, page_rows=OPTIONS_MAX)
        values = {"kind": kind, "name": name, "kinds": list(KINDS)}
        return respond(context, request, listing, "configs.html", values)

    async def alter(request: Request) -> Response:
        form = await context.form(request)
        kind, name = form.get("type"), form.get("name")
        option, value = form.get("option").strip(), form.get("value")
        delete = form.get("operation") == "delete"
        client = context.session(request).client
        resource = resource_of(kind, name)
        change = Change(
            AlterConfigOp.DELETE if delete else AlterConfigOp.SET, option, None if delete else value
        )
        back = f"/configs?{urlencode({'type': kind, 'name': name})}"
        if form.get("confirmed") == "yes":
            await alter_configs(client, resource, [change])
            return RedirectResponse(back, 303)
        before = {each.name: each for each in await describe_configs(client, resource)}.get(option)
        await alter_configs(client, resource, [change], validate_only=True)
        if before is None:
            old: str | None = "not set"
        else:
            old = "[hidden]" if before.sensitive else before.value
        hidden = before is not None and before.sensitive
        new = "its default" if delete else "[hidden]" if hidden else value
        flag = f"--delete {option}" if delete else f"--set {shlex.quote(f'{option}={new}')}"
        owner = f"{kind} {name}" if kind in ("topic", "group") else "the cluster"
        plan = Plan(
            title="Change an option",
            text="The broker accepts this change. It takes effect at once.",
            button="Change it",
            action="/configs/alter",
            back=back,
            fields=[
                ("type", kind),
                ("name", name),
                ("option", option),
                ("value", value),
                ("operation", "delete" if delete else "set"),
            ],
            heads=["Of", "Option", "Now", "Then"],
            rows=[[f"{kind} {name}", option, old, new]],
            needs=f"ALTER_CONFIGS on {owner}",
            command=f"barnabas configs alter {flag_of(kind, name)} {flag}",
        )
        return ask(context, request, plan)

    return [
        *(Route(path, configs, methods=["GET"]) for path in both("/configs")),
        Route("/configs/alter", alter, methods=["POST"]),
    ]


def resource_of(kind: str, name: str) -> Resource:
    """Return the resource of a kind and a name; raise HTTPException(400)."""
    if kind not in KINDS:
        raise HTTPException(400, f"type: {kind!r} must be one of {', '.join(KINDS)}.")
    if kind == "cluster":
        name = ""
    elif not name:
        raise HTTPException(400, f"A {kind} needs a name.")
    return Resource(KINDS[kind], name)


def flag_of(kind: str, name: str) -> str:
    """Return the command's flag for a resource."""
    if kind == "cluster":
        return "--cluster"
    flag = "broker-loggers" if kind == "loggers" else kind
    return f"--{flag} {shlex.quote(name)}"

"""ACLs with "may X do Y, and by which rule"."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    create_acls,
    delete_acls,
    describe_acls,
)
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.door import Mode
from barnabas.console.form import Form, member_of
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.pages.topic import failing
from barnabas.console.rendering import counted
from barnabas.model.errors import BarnabasError

CLUSTER = "kafka-cluster"
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
OPERATIONS = tuple(
    each.name for each in ACLOperation if each not in (ACLOperation.UNKNOWN, ACLOperation.ANY)
)
ASKED = ("principal", "operation", "type", "name", "host")

COLUMNS = (
    Column("type", "Resource", sorts=True),
    Column("name", "Name", sorts=True),
    Column("pattern", "Pattern"),
    Column("principal", "Principal", sorts=True),
    Column("host", "Host"),
    Column("operation", "Operation", sorts=True),
    Column("permission", "Permission", sorts=True),
)
REMOVE = Column("remove", "Change", "action", link="remove_href")

EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""
    can_change = context.door.mode is Mode.FULL
    columns = (*COLUMNS, REMOVE) if can_change else COLUMNS

    async def acls(request: Request) -> Response:
        client = context.session(request).client
        q = request.query_params.get("q", "")
        found = await failing(describe_acls(client, EVERYTHING))
        missing = [str(found)] if isinstance(found, BarnabasError) else []
        rows = [] if isinstance(found, BarnabasError) else [_acl_row(each) for each in found]
        rows = [
            row
            for row in rows
            if q.lower() in f"{row['type']} {row['name']} {row['principal']}".lower()
        ]
        listing = Listing(
            "ACLs",
            "/acls",
            columns,
            rows,
            caption=counted(len(rows), "rule"),
            command="barnabas acls list",
            q=q,
            searches=True,
            missing=missing,
        )
        page_of(rows, listing, request, name="key", default="key")
        values: dict[str, Any] = {
            "operations": OPERATIONS,
            "types": TYPES,
            "ruling": None,
            "asked": {name: request.query_params.get(name, "") for name in ASKED},
            "blank": {each.key: "" for each in COLUMNS},
            "rule": {
                each.key: request.query_params.get(f"rule-{each.key}", "") for each in COLUMNS
            },
        }
        if request.query_params.get("principal"):
            values["ruling"] = _ruling(context, request)
        return respond(context, request, listing, "acls.html", values)

    async def add_acl(request: Request) -> Response:
        form = await context.form(request)
        acl = _acl(form)
        if form.get("confirmed") == "yes":
            outcomes = await create_acls(context.session(request).client, [acl])
            results = [("The rule", each.error) for each in outcomes]
            return report(context, request, "Add a rule", results, "/acls", done="added")
        return ask(context, request, _acl_plan("add", "Add a rule", "Add it", acl, form))

    async def remove_acl(request: Request) -> Response:
        form = await context.form(request)
        acl = _acl(form)
        if form.get("confirmed") == "yes":
            outcomes = await delete_acls(context.session(request).client, [acl])
            results: list[tuple[str, BaseException | None]] = []
            for each in outcomes:
                if each.error is not None:
                    results.append(("The rule", each.error))
                results += [(str(one.acl.principal), one.error) for one in each.matched]
            return report(context, request, "Remove a rule", results, "/acls", done="removed")
        return ask(context, request, _acl_plan("remove", "Remove a rule", "Remove it", acl, form))

    return [
        *(Route(path, acls, methods=["GET"]) for path in both("/acls")),
        Route("/acls/add", add_acl, methods=["POST"]),
        Route("/acls/remove", remove_acl, methods=["POST"]),
    ]


def _acl_row(acl: ACL) -> Row:
    pattern = acl.resource_pattern
    row: Row = {
        "type": pattern.resource_type.name,
        "name": pattern.resource_name,
        "pattern": pattern.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission_type.name,
    }
    given = {f"rule-{key}": value for key, value in row.items()}
    return row | {
        "key": " ".join(row.values()),
        "remove": "Remove",
        "remove_href": f"/acls?{urlencode(given, errors='replace')}#remove",
    }


def _acl(form: Form) -> ACL:
    kind = member_of(ResourceType, form.get("type"))
    name = CLUSTER if kind is ResourceType.CLUSTER else form.get("name")
    principal = form.get("principal")
    if not name or ":" not in principal:
        raise HTTPException(400, "A rule needs a name, and a principal written User:alice.")
    return ACL(
        principal=principal,
        host=form.get("host") or "*",
        operation=member_of(ACLOperation, form.get("operation")),
        permission_type=member_of(ACLPermissionType, form.get("permission") or "ALLOW"),
        resource_pattern=ResourcePattern(
            kind, name, member_of(ACLResourcePatternType, form.get("pattern") or "LITERAL")
        ),
    )


def _acl_plan(verb: str, title: str, button: str, acl: ACL, form: Form) -> Plan:
    row = _acl_row(acl)
    return Plan(
        title=title,
        text="All brokers apply it within moments.",
        button=button,
        action=f"/acls/{verb}",
        back="/acls",
        fields=[(column.key, row[column.key]) for column in COLUMNS],
        heads=[column.title for column in COLUMNS],
        rows=[[row[column.key] for column in COLUMNS]],
        needs="ALTER on the cluster",
        command=f"barnabas acls {verb} {_options(verb, row)}",
    )


def _options(verb: str, row: Row) -> str:
    """Return the options of the command that adds or removes a rule."""
    permission, principal = row["permission"].lower(), row["principal"]
    words = (
        [f"--{permission}", principal]
        if verb == "add"
        else ["--permission", permission, "--principal", principal]
    )
    words += ["--operation", row["operation"].lower().replace("_", "-")]
    kind = row["type"].lower().replace("_", "-")
    words += ["--cluster"] if kind == "cluster" else [f"--{kind}", row["name"]]
    words += ["--pattern", row["pattern"].lower()]
    if row["host"] != "*":
        words += ["--host", row["host"]]
    return shlex.join(words)


def _ruling(context: Context, request: Request) -> object:
    """Return the answer to "may X do Y on Z", or why there is none."""
    params = request.query_params
    kind = member_of(ResourceType, params.get("type", "TOPIC"))
    name = CLUSTER if kind is ResourceType.CLUSTER else params.get("name", "")
    principal = params.get("principal", "")
    if ":" not in principal:
        principal = f"User:{principal}"
    try:
        return context.door.ruling(
            context.session(request).visitor,
            principal,
            params.get("host") or "127.0.0.1",
            member_of(ACLOperation, params.get("operation", "READ")),
            kind,
            name,
        )
    except BarnabasError as failure:
        return failure

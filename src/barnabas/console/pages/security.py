"""ACLs with "may X do Y, and by which rule", users, and quotas with what is used of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

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
from barnabas.admin.quotas import (
    QuotaAlteration,
    alter_client_quotas,
    describe_client_quotas,
    describe_quota_usage,
)
from barnabas.admin.scram import (
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.form import Form
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.topic import failing
from barnabas.model.errors import BarnabasError, RequestError

ASK_MS = 3_000
CLUSTER = "kafka-cluster"
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
OPERATIONS = tuple(
    each.name for each in ACLOperation if each not in (ACLOperation.UNKNOWN, ACLOperation.ANY)
)
QUOTA_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
ENTITY_TYPES = ("user", "client-id", "ip")
ITERATIONS = 8192
ASKED = ("principal", "operation", "type", "name", "host")

ACL_COLUMNS = (
    Column("type", "Resource", sorts=True),
    Column("name", "Name", sorts=True),
    Column("pattern", "Pattern"),
    Column("principal", "Principal", sorts=True),
    Column("host", "Host"),
    Column("operation", "Operation", sorts=True),
    Column("permission", "Permission", sorts=True),
)
USER_COLUMNS = (
    Column("name", "User", sorts=True),
    Column("mechanisms", "SCRAM mechanisms"),
)
QUOTA_COLUMNS = (
    Column("entity", "Who", sorts=True),
    Column("key", "Quota", sorts=True),
    Column("limit", "Limit", "number", sorts=True),
    Column("used", "Used here", "number", sorts=True),
    Column("throttle_ms", "Throttled for", "ms", sorts=True),
)
EnumType = TypeVar("EnumType", bound=IntEnum)

EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

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
            ACL_COLUMNS,
            rows,
            caption=f"{len(rows):,} rules",
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

    async def users(request: Request) -> Response:
        found = await failing(
            describe_user_scram_credentials(context.session(request).client, None)
        )
        failed = isinstance(found, BarnabasError)
        rows: list[Row] = (
            []
            if isinstance(found, BarnabasError)
            else [
                {
                    "name": name,
                    "mechanisms": str(each)
                    if isinstance(each, RequestError)
                    else ", ".join(
                        f"{one.mechanism.name.replace('_', '-')} ({one.iterations} iterations)"
                        for one in each
                    ),
                }
                for name, each in found.items()
            ]
        )
        listing = Listing(
            "Users",
            "/users",
            USER_COLUMNS,
            rows,
            intro="Users that log in by SCRAM. Those of PLAIN are in the brokers' options, those "
            "of certificates in nobody's list.",
            caption=f"{len(rows):,} users",
            command="barnabas users list",
            missing=[str(found)] if failed else [],
        )
        page_of(rows, listing, request)
        return respond(context, request, listing, "users.html")

    async def set_user(request: Request) -> Response:
        form = await context.form(request)
        name, password = form.get("name"), form.get("password")
        if not name or not password:
            raise HTTPException(400, "A user needs a name and a password.")
        mechanism = _member(ScramMechanism, form.get("mechanism").replace("-", "_"))
        # Thousands of hashes: not on the broker's loop.
        credential = await asyncio.get_running_loop().run_in_executor(
            None, UserScramCredentialUpsertion, name, mechanism, password, ITERATIONS
        )
        outcomes = await alter_user_scram_credentials(context.session(request).client, [credential])
        results = [(f"User {user}", failed) for user, failed in outcomes.items()]
        return report(context, request, "Users", results, "/users", done="the password is set")

    async def remove_user(request: Request) -> Response:
        form = await context.form(request)
        name = form.get("name")
        client = context.session(request).client
        if form.get("confirmed") == "yes":
            found = (await describe_user_scram_credentials(client, [name]))[name]
            if isinstance(found, RequestError):
                raise found
            outcomes = await alter_user_scram_credentials(
                client, [UserScramCredentialDeletion(name, each.mechanism) for each in found]
            )
            results = [(f"User {user}", failed) for user, failed in outcomes.items()]
            return report(context, request, "Users", results, "/users", done="removed")
        plan = Plan(
            title=f"Remove {name}",
            text="The user can no longer log in by SCRAM. Connections that are open stay.",
            button="Remove it",
            action="/users/remove",
            back="/users",
            fields=[("name", name)],
            needs="ALTER on the cluster",
            command="barnabas users remove NAME",
        )
        return ask(context, request, plan)

    async def quotas(request: Request) -> Response:
        client = context.session(request).client
        found, usage = await asyncio.gather(
            failing(describe_client_quotas(client)),
            failing(describe_quota_usage(client, [context.door.broker_id], timeout_ms=ASK_MS)),
        )
        rows: list[Row] = []
        missing = []
        if isinstance(found, BarnabasError):
            missing.append(str(found))
        else:
            used = {}
            here = {} if isinstance(usage, BarnabasError) else usage
            for measured in here.values():
                if not isinstance(measured, RequestError):
                    used = {(_entity(each.entity), each.key): each for each in measured}
            for quota in found:
                for key, limit in quota.values.items():
                    seen = used.get((_entity(quota.entity), key))
                    rows.append(
                        {
                            "id": f"{_entity(quota.entity)} {key}",
                            "entity": _entity(quota.entity),
                            "key": key,
                            "limit": limit,
                            "used": None if seen is None else seen.rate,
                            "throttle_ms": None if seen is None else seen.throttle_time_ms,
                        }
                    )
        listing = Listing(
            "Quotas",
            "/quotas",
            QUOTA_COLUMNS,
            rows,
            caption=f"{len(rows):,} quotas, with what broker {context.door.broker_id} measures",
            command="barnabas quotas list",
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request, name="id", default="id")
        return respond(
            context, request, listing, "quotas.html", {"keys": QUOTA_KEYS, "kinds": ENTITY_TYPES}
        )

    async def set_quota(request: Request) -> Response:
        form = await context.form(request)
        entity: dict[str, str | None] = {}
        for kind in ENTITY_TYPES:
            if form.get(f"default-{kind}") == "yes":
                entity[kind] = None
            elif form.get(kind):
                entity[kind] = form.get(kind)
        if not entity:
            raise HTTPException(400, "A quota needs a user, a client id or an address.")
        key, text = form.get("key"), form.get("value").strip()
        try:
            value = float(text) if text else None
        except ValueError:
            raise HTTPException(400, f"{key}: {text!r} is not a number.") from None
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
            command=f"barnabas quotas set … {key}={text}" if text else "barnabas quotas remove …",
        )
        return ask(context, request, plan)

    return [
        *(Route(path, acls, methods=["GET"]) for path in both("/acls")),
        Route("/acls/add", add_acl, methods=["POST"]),
        Route("/acls/remove", remove_acl, methods=["POST"]),
        *(Route(path, users, methods=["GET"]) for path in both("/users")),
        Route("/users/set", set_user, methods=["POST"]),
        Route("/users/remove", remove_user, methods=["POST"]),
        *(Route(path, lively(context, quotas), methods=["GET"]) for path in both("/quotas")),
        Route("/quotas/set", set_quota, methods=["POST"]),
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
    return row | {"key": " ".join(row.values())}


def _acl(form: Form) -> ACL:
    kind = _member(ResourceType, form.get("type"))
    name = CLUSTER if kind is ResourceType.CLUSTER else form.get("name")
    principal = form.get("principal")
    if not name or ":" not in principal:
        raise HTTPException(400, "A rule needs a name, and a principal written User:alice.")
    return ACL(
        principal=principal,
        host=form.get("host") or "*",
        operation=_member(ACLOperation, form.get("operation")),
        permission_type=_member(ACLPermissionType, form.get("permission") or "ALLOW"),
        resource_pattern=ResourcePattern(
            kind, name, _member(ACLResourcePatternType, form.get("pattern") or "LITERAL")
        ),
    )


def _acl_plan(verb: str, title: str, button: str, acl: ACL, form: Form) -> Plan:
    row = _acl_row(acl)
    flag = "--allow" if acl.permission_type is ACLPermissionType.ALLOW else "--deny"
    return Plan(
        title=title,
        text="All brokers apply it within moments.",
        button=button,
        action=f"/acls/{verb}",
        back="/acls",
        fields=[(column.key, row[column.key]) for column in ACL_COLUMNS],
        heads=[column.title for column in ACL_COLUMNS],
        rows=[[row[column.key] for column in ACL_COLUMNS]],
        needs="ALTER on the cluster",
        command=f"barnabas acls {verb} {flag} NAME --operation {row['operation'].lower()} "
        f"--{row['type'].lower().replace('_', '-')} NAME",
    )


def _ruling(context: Context, request: Request) -> object:
    """Return the answer to "may X do Y on Z", or why there is none."""
    params = request.query_params
    kind = _member(ResourceType, params.get("type", "TOPIC"))
    name = CLUSTER if kind is ResourceType.CLUSTER else params.get("name", "")
    principal = params.get("principal", "")
    if ":" not in principal:
        principal = f"User:{principal}"
    try:
        return context.door.ruling(
            context.session(request).visitor,
            principal,
            params.get("host") or "127.0.0.1",
            _member(ACLOperation, params.get("operation", "READ")),
            kind,
            name,
        )
    except BarnabasError as failure:
        return failure


def _member(kind: type[EnumType], name: str) -> EnumType:
    """Return the member of an enumeration; raise HTTPException(400)."""
    try:
        return kind[name]
    except KeyError:
        raise HTTPException(400, f"{name!r} is not a {kind.__name__}.") from None


def _entity(entity: Mapping[str, str | None]) -> str:
    """Return the entity of a quota as text."""
    return ", ".join(
        f"{kind} {name if name is not None else '(default)'}"
        for kind, name in sorted(entity.items())
    )

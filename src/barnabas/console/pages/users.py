"""Users that log in by SCRAM."""

from __future__ import annotations

import asyncio
import shlex
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.scram import (
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.door import Mode
from barnabas.console.form import member_of
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.pages.topic import failing
from barnabas.console.rendering import counted
from barnabas.model.errors import BarnabasError, RequestError

ITERATIONS = 8192

COLUMNS = (
    Column("name", "User", sorts=True),
    Column("mechanisms", "SCRAM mechanisms"),
)
CHANGE = Column("change", "Change", "action", link="change_href")


def routes(context: Context) -> list[Route]:
    """Return the routes."""
    columns = (*COLUMNS, CHANGE) if context.door.mode is Mode.FULL else COLUMNS

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
                    "change": "Change",
                    "change_href": f"/users?{urlencode({'of': name}, errors='replace')}#change",
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
            columns,
            rows,
            intro="Users that log in by SCRAM. Those of PLAIN are in the brokers' options, those "
            "of certificates in nobody's list.",
            caption=counted(len(rows), "user"),
            command="barnabas users list",
            missing=[str(found)] if failed else [],
        )
        page_of(rows, listing, request)
        return respond(
            context, request, listing, "users.html", {"of": request.query_params.get("of", "")}
        )

    async def set_user(request: Request) -> Response:
        form = await context.form(request)
        name, password = form.get("name"), form.get("password")
        if not name or not password:
            raise HTTPException(400, "A user needs a name and a password.")
        mechanism = member_of(ScramMechanism, form.get("mechanism").replace("-", "_"))
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
            command=f"barnabas users remove {shlex.quote(name)}",
        )
        return ask(context, request, plan)

    return [
        *(Route(path, users, methods=["GET"]) for path in both("/users")),
        Route("/users/set", set_user, methods=["POST"]),
        Route("/users/remove", remove_user, methods=["POST"]),
    ]

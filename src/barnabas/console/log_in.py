"""Logging in and out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from math import ceil

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.console.door import Door, LoginRejected
from barnabas.console.failures import Failures
from barnabas.console.form import read_fields, read_form
from barnabas.console.guard import COOKIE, LOG_IN, SECURE_COOKIE
from barnabas.console.rendering import Templates
from barnabas.console.session import ABSOLUTE_S, Session, Sessions
from barnabas.console.zone import COOKIE as ZONE
from barnabas.console.zone import NAME_MAX, zone_of

THEMES = ("auto", "light", "dark")
CHOICE_S = 365 * 86400
"""How long a browser keeps what was chosen."""


class LogInPages:
    """The log-in, the log-out, and the choice of a theme and of a time zone."""

    def __init__(
        self, door: Door, sessions: Sessions, templates: Templates, now_s: Callable[[], float]
    ) -> None:
        self._door = door
        self._sessions = sessions
        self._templates = templates
        self._failures = Failures(now_s)

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(LOG_IN, self._page, methods=["GET"]),
            Route(LOG_IN, self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
            Route("/theme", self._theme, methods=["POST"]),
            Route("/zone", self._zone, methods=["POST"]),
        ]

    async def _page(self, request: Request) -> Response:
        if not self._door.mechanisms:
            return RedirectResponse("/", 303)
        return self._form(request, request.query_params.get("next", "/"))

    def _form(
        self, request: Request, wanted: str, name: str = "", error: str = "", status: int = 200
    ) -> Response:
        values = {"wanted": local(wanted), "name": name, "error": error}
        return self._templates.page(request, "log_in.html", values, status=status)

    async def _log_in(self, request: Request) -> Response:
        form = await read_fields(request)  # there is no session yet that could have a token
        name, wanted = form.get("name"), local(form.get("next", "/"))
        host = request.client.host if request.client is not None else ""
        wait_s = self._failures.wait_s(name, host)
        if wait_s > 0:
            error = f"Too many attempts. Wait {ceil(wait_s)} s."
            return self._form(request, wanted, name, error, 429)
        try:
            visitor = await self._door.log_in(name, form.get("password"), host)
        except LoginRejected as failure:
            self._failures.failed(name, host)
            return self._form(request, wanted, name, str(failure), 403)
        self._failures.succeeded(name, host)
        before: Session | None = request.scope.get("session")
        if before is not None:
            self._sessions.end(before)
        session = self._sessions.begin(visitor)
        response = RedirectResponse(wanted, 303)
        # Behind a proxy with TLS the browser says so in its origin.
        origin = request.headers.get("origin", "")
        secure = request.url.scheme == "https" or origin.startswith("https://")
        response.set_cookie(
            SECURE_COOKIE if secure else COOKIE,
            session.key,
            max_age=ABSOLUTE_S,
            path="/",
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def _log_out(self, request: Request) -> Response:
        session: Session | None = request.scope.get("session")
        if session is not None:
            await read_form(request, session)
            self._sessions.end(session)
        response = RedirectResponse(LOG_IN if self._door.mechanisms else "/", 303)
        response.delete_cookie(COOKIE, path="/")
        response.delete_cookie(SECURE_COOKIE, path="/", secure=True)
        return response

    async def _theme(self, request: Request) -> Response:
        form = await read_form(request, request.scope["session"])
        chosen = form.get("theme")
        return _remembering(
            form.get("next", "/"), "barnabas-theme", chosen if chosen in THEMES else ""
        )

    async def _zone(self, request: Request) -> Response:
        form = await read_form(request, request.scope["session"])
        chosen = form.get("zone")[:NAME_MAX]
        known = chosen == "UTC" or zone_of(chosen) is not UTC
        return _remembering(form.get("next", "/"), ZONE, chosen if known else "")


def _remembering(wanted: str, cookie: str, chosen: str) -> Response:
    """Return the way back to a page, with a choice that the browser keeps, if there is one."""
    response = RedirectResponse(local(wanted), 303)
    if chosen:
        response.set_cookie(
            cookie, chosen, max_age=CHOICE_S, path="/", httponly=True, samesite="strict"
        )
    return response


def local(path: str) -> str:
    """Return a path of this console to go to; the overview for anything else."""
    if not path.startswith("/") or path.startswith(("//", "/\\")):
        return "/"
    return path if path.isprintable() and "\\" not in path else "/"

"""The console's application: its pages behind the guard, with one context for all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from barnabas.client.errors import KafkaTimeoutError, NetworkError
from barnabas.console import segments
from barnabas.console.address import ConsoleAddress, Hosts
from barnabas.console.client import DoorClient
from barnabas.console.context import Context
from barnabas.console.door import Door
from barnabas.console.guard import CERTIFICATE, COOKIE, SECURE_COOKIE, Guard
from barnabas.console.log_in import LogInPages
from barnabas.console.rendering import Templates
from barnabas.console.session import Session, Sessions
from barnabas.console.static_files import PREFIX, StaticFiles
from barnabas.console.window import Window
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError

logger = logging.getLogger("barnabas.console")

PAGES = (
    "overview",
    "brokers",
    "topics",
    "topic",
    "topic_changes",
    "groups",
    "group_changes",
    "pipelines",
    "transactions",
    "hanging",
    "moves",
    "relocations",
    "elections",
    "acls",
    "users",
    "quotas",
    "configs",
    "requests",
    "clients",
    "diary",
    "why",
    "logs",
)
RECORDS = "barnabas.console.records.pages"
"""The pages about records, which are a package of their own."""

DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.POLICY_VIOLATION,
}
ABSENT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID,
}


def build_app(
    door: Door,
    window: Window,
    address: ConsoleAddress,
    *,
    hosts: Iterable[str] = (),
    exports: bool = True,
    now_s: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """Return the application."""
    segments.register()
    sessions = Sessions(now_s, lambda visitor: DoorClient(door, visitor))
    static = StaticFiles()
    templates = Templates(
        _session_or_none,
        static,
        {
            "mode": door.mode.value,
            "can_change": door.mode.value == "full",
            "can_read_records": door.mode.value != "metadata-only",
            "has_log_in": bool(door.mechanisms),
            "open_to_all": not door.secured,
            "is_exposed": not door.secured and not address.is_loopback,
            "exports": exports,
            "broker_id": door.broker_id,
            "cluster_id": window.cluster_id,
            "version": window.version,
        },
    )
    templates.compile()
    context = Context(door, window, _session, templates, exports)
    log_in = LogInPages(door, sessions, templates, now_s)
    routes: list[BaseRoute] = [
        Route(PREFIX + "{name}", static.serve, methods=["GET"]),
        *log_in.routes(),
    ]
    for name in PAGES:
        routes += import_module(f"barnabas.console.pages.{name}").routes(context)
    if find_spec("barnabas.console.records") is not None:
        routes += import_module(RECORDS).routes(context)
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _handler(templates),
            BarnabasError: _handler(templates),
            500: _handler(templates),
        },
    )
    return Guard(app, Hosts(address, hosts), _finder(door, sessions))


def _session(request: Request) -> Session:
    session = _session_or_none(request)
    assert session is not None, "the guard lets no page be called without one"
    return session


def _session_or_none(request: Request) -> Session | None:
    session: Session | None = request.scope.get("session")
    return session


def _finder(door: Door, sessions: Sessions) -> Callable[[Request], Session | None]:
    """Return what finds sessions: by the cookie of a log-in, else by the browser's certificate.

    All browsers of an address with the same certificate share a session; without a log-in, those
    without a certificate, too.
    """
    shared: dict[tuple[str, bytes], str] = {}

    def find(request: Request) -> Session | None:
        if door.mechanisms:
            key = request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE) or ""
            session = sessions.find(key)
            if session is not None:
                return session
        certificate = request.scope.get("state", {}).get(CERTIFICATE)
        if certificate is None and door.mechanisms:
            return None
        host = request.client.host if request.client is not None else ""
        who = host, sha256(certificate or b"").digest()
        session = sessions.find(shared.get(who, ""))
        if session is None:
            if len(shared) > 2 * 1000:
                shared.clear()
            session = sessions.begin(
                door.anonymous(host)
                if certificate is None
                else door.by_certificate(certificate, host)
            )
            shared[who] = session.key
        return session

    return find


def _handler(templates: Templates) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers a page that raised: with a page that says what is wrong."""

    async def handle(request: Request, failure: Exception) -> Response:
        status, title, text = _described(failure)
        if request.scope.get("is_live"):  # what is not a stream is put into the page
            return templates.page(request, "live_end.html", {"error": text}, status=status)
        if request.url.path.endswith(".json"):
            return JSONResponse({"error": text}, status)
        return templates.page(
            request, "error.html", {"title": title, "text": text, "status": status}, status=status
        )

    return handle


def _described(failure: Exception) -> tuple[int, str, str]:
    if isinstance(failure, HTTPException):
        titles = {404: "Not found", 403: "Not allowed", 405: "Not allowed"}
        text = failure.detail
        if failure.status_code == 404 and text == "Not Found":
            text = "There is no such page."
        return failure.status_code, titles.get(failure.status_code, "That did not work"), text
    if isinstance(failure, RequestError):
        text = failure.message or failure.code.meaning
        if failure.code in DENIED:
            return 403, "Not allowed", text
        if failure.code in ABSENT:
            return 404, "Not found", text
        if text.upper().replace(" ", "_") == failure.code.name:  # it was sent without a reason
            text = failure.code.meaning
        return 409, "The broker rejected this", f"{failure.code.name}: {text}"
    if isinstance(failure, KafkaTimeoutError | NetworkError):
        return 504, "No answer", str(failure)
    if isinstance(failure, BarnabasError):
        return 409, "That did not work", str(failure)
    logger.error("console: a page failed", exc_info=failure)
    return 500, "A page failed", "This is a bug. The broker's log has the details."

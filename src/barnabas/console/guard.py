"""What every request passes first: its host, origin and session; and what every answer carries.

The application behind it is called only with a session, except for files and the log-in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.address import Hosts
from barnabas.console.door import LoginRejected
from barnabas.console.form import BODY_BYTES_MAX
from barnabas.console.session import Session
from barnabas.console.static_files import PREFIX

logger = logging.getLogger("barnabas.console")

COOKIE, SECURE_COOKIE = "barnabas", "__Host-barnabas"
LOG_IN = "/login"
CERTIFICATE = "certificate"
"""Where the state of a request has the certificate (DER) that its browser has shown, if any."""
SAFE_METHODS = ("GET", "HEAD")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """An application behind checks."""

    def __init__(self, app: ASGIApp, hosts: Hosts, find: Callable[[Request], Session | None]):
        """`find` returns the session of a request, or None if one must log in first.

        It raises LoginRejected for a certificate that names nobody.
        """
        self._app = app
        self._hosts = hosts
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, answer it or pass it on."""
        if scope["type"] != "http":
            return
        # A group's name may have a slash in it: paths are matched as they were sent.
        scope = dict(scope)
        raw_path = scope.get("raw_path")
        if raw_path:
            scope["path"] = raw_path.decode("ascii", "replace").partition("?")[0]
        request = Request(scope, receive)
        rejection = self._rejection(request)
        if rejection is None:
            rejection = self._without_session(request)
        answer: ASGIApp = self._app if rejection is None else rejection
        try:
            await answer(scope, receive, _with_headers(send, is_file=_is_file(request)))
        except Exception as failure:  # noqa: BLE001 - it was logged, and answered with a page
            logger.debug("console: %s %s failed: %s", request.method, request.url.path, failure)

    def _rejection(self, request: Request) -> Response | None:
        headers = request.headers
        if len(headers.getlist("host")) != 1 or not self._hosts.allows(headers["host"]):
            return _plain(
                421,
                "The console does not answer under this name. If it is one of its names, add it to "
                "barnabas.console.hosts.",
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return _plain(413, f"A request may have {BODY_BYTES_MAX} bytes.")
        if request.method not in (*SAFE_METHODS, "POST"):
            return _plain(405, "Only GET, HEAD and POST are allowed.")
        if request.method == "POST" and not _is_same_origin(headers):
            return _plain(403, "This request comes from another site, so it was rejected.")
        return None

    def _without_session(self, request: Request) -> Response | None:
        """Return the way to the log-in for a request that needs a session and has none."""
        path = request.url.path
        try:
            session = self._find(request)
        except LoginRejected as failure:
            return _plain(403, str(failure))
        request.scope["session"] = session
        if session is not None or _is_file(request) or path == LOG_IN:
            return None
        if request.method == "POST" or path.endswith((".json", ".csv")):
            return _plain(401, "Log in first.")
        query = request.url.query
        wanted = path + (f"?{query}" if query else "")
        return RedirectResponse(f"{LOG_IN}?next={quote(wanted, safe='')}", 303)


def _is_file(request: Request) -> bool:
    return request.url.path.startswith(PREFIX)


def _is_same_origin(headers: Headers) -> bool:
    """Return whether a request that changes something was sent by a page of the console."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin", "")
    scheme, separator, host = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and host == headers["host"]


def _plain(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status)


def _with_headers(send: Send, *, is_file: bool) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if not is_file:
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending

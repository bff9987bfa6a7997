"""A server that issues bearer tokens for client credentials, as an identity provider does."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CLIENT, SECRET = "my-client", "my-secret"


class TokenServer:
    """What the server was asked, and how it answers next."""

    def __init__(self, issue: Callable[[], str]) -> None:
        self.issue = issue
        self.asked: list[dict[str, list[str]]] = []
        self.failures: list[tuple[int, bytes]] = []
        """Answered before any token: status and body."""
        self.url = ""

    def answer(self, authorization: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body."""
        self.asked.append(parse_qs(body.decode(), strict_parsing=True))
        if self.failures:
            return self.failures.pop(0)
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, json.dumps({"error": "invalid_client", "you_sent": authorization}).encode()
        return 200, json.dumps({"access_token": self.issue(), "token_type": "Bearer"}).encode()


@contextmanager
def token_server(
    issue: Callable[[], str], tls: ssl.SSLContext | None = None
) -> Iterator[TokenServer]:
    """Serve on a port of 127.0.0.1 that the system chooses."""
    state = TokenServer(issue)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = state.answer(self.headers["Authorization"], body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme, host = ("http", "127.0.0.1") if tls is None else ("https", "localhost")
    state.url = f"{scheme}://{host}:{server.server_port}/token"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""The text behind a URL: of a web server, or of a file. It blocks, so it is work for a thread.

urllib is imported with the first download: with its parser of e-mails it takes megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from barnabas.model.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 10.0
BYTES_MAX = 1 << 20
SCHEMES = ("https", "http", "file")


class DownloadFailed(BarnabasError):
    """A URL that gives no text: `status` is the server's answer, None if there was none."""

    def __init__(self, why: str, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(why)
        self.status = status
        self.body = body


def check_url(url: str, option: str) -> str | None:
    """Return the path of a file's URL, None for a server's; raise ConfigError for any other."""
    try:
        parts = urlsplit(url)
    except ValueError as failure:
        raise ConfigError(f"{option}={url}: not a URL: {failure}") from None
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"{option}={url}: must begin with https://, http:// or file://")
    if parts.scheme == "file":
        return unquote(parts.path)
    if not parts.hostname:
        raise ConfigError(f"{option}={url}: has no host")
    return None


def read_file(path: str) -> bytes:
    """Return the text of a file; raise DownloadFailed."""
    try:
        with open(path, "rb") as file:
            return _limited(file.read)
    except OSError as failure:
        raise DownloadFailed(failure.strerror or str(failure)) from failure


def download(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str],
    connect_s_max: float = TIMEOUT_S,
    read_s_max: float = TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
) -> bytes:
    """Return what a web server answers to a GET, or to a POST of a body; raise DownloadFailed.

    A GET follows redirects of the same scheme: never from https to http, nor to a file. A POST
    follows none, since it carries credentials that are meant for this server alone.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, build_opener

    opener = build_opener(*_handlers(read_s_max, tls, follows=body is None))
    request = Request(url, body, dict(headers))
    try:
        with opener.open(request, timeout=connect_s_max) as response:
            return _limited(response.read)
    except HTTPError as failure:
        with failure:  # it is the response, too
            said = failure.read(BYTES_MAX) if failure.fp is not None else b""
        raise DownloadFailed(f"status {failure.code}", failure.code, said) from None
    except (OSError, URLError, HTTPException, ValueError) as failure:
        why = getattr(failure, "reason", None) or failure
        raise DownloadFailed(str(why) or type(failure).__name__) from failure


def _limited(read: Callable[[int], bytes]) -> bytes:
    text = bytes(read(BYTES_MAX + 1))
    if len(text) > BYTES_MAX:
        raise DownloadFailed(f"larger than {BYTES_MAX} bytes")
    return text


def _handlers(read_s_max: float, tls: ssl.SSLContext | None, *, follows: bool) -> list[Any]:
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.error import URLError
    from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            scheme = urlsplit(newurl).scheme
            if follows and scheme == urlsplit(req.full_url).scheme:
                return super().redirect_request(req, fp, code, msg, headers, newurl)
            fp.close()
            raise URLError(f"redirected to another scheme, {scheme}" if follows else "redirected")

    # A connection has one timeout, for connecting; afterwards its socket gets that for reading.
    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(read_s_max)

    class Encrypted(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(read_s_max)

    class Http(HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(Plain, req)

    class Https(HTTPSHandler):
        def https_open(self, req: Any) -> Any:
            return self.do_open(Encrypted, req, context=tls)

    return [Redirects(), Http(), Https()]

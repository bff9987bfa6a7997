"""Reads the head of an HTTP/1.1 request: one of GET or HEAD, which has no body."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from barnabas.model.errors import BarnabasError

HEAD_BYTES_MAX = 8 * 1024
METHODS = ("GET", "HEAD")

_LINE = re.compile(r"([A-Z]{1,16}) (\S+) HTTP/1\.([01])")
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*")
_WEIGHT = re.compile(r"q=([01](?:\.[0-9]{0,3})?)")


class BadRequest(BarnabasError):
    """A request that is answered with an error, after which its connection is closed."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(f"{status.value} {status.phrase}: {why}")
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The head of a request."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    fields: Mapping[str, str]
    """By lower-case name."""
    keeps_alive: bool
    chunked: bool
    """Whether the client understands an answer of unknown length (HTTP/1.1)."""

    @property
    def is_head(self) -> bool:
        """Whether the answer must have no body."""
        return self.method == "HEAD"

    def prefers(self, media_type: str, over: str) -> bool:
        """Return whether the client would rather have one media type than another."""
        accepted = self.fields.get("accept", "*/*")
        return weight(accepted, media_type) > weight(accepted, over)

    @property
    def accepts_gzip(self) -> bool:
        """Whether the answer may be compressed."""
        codings = self.fields.get("accept-encoding", "")
        return any(
            part.split(";")[0].strip().lower() == "gzip" and _weight_of(part) > 0
            for part in codings.split(",")
        )

    def values(self, name: str, allowed: Sequence[str]) -> frozenset[str]:
        """Return the values of a parameter; raise if one is not allowed."""
        found = frozenset(self.query.get(name, ()))
        for value in sorted(found):
            if value not in allowed:
                raise BadRequest(
                    HTTPStatus.BAD_REQUEST, f"{name}={value[:64]}: must be {', '.join(allowed)}"
                )
        return found


def head_end(received: bytes | bytearray) -> int:
    """Return where the head ends and its body would begin; -1 if it is incomplete.

    Raise if it is larger than a head may be.
    """
    end = received.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX)
    if end >= 0:
        return end + 4
    if len(received) >= HEAD_BYTES_MAX:
        raise BadRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"the head must be at most {HEAD_BYTES_MAX} bytes",
        )
    return -1


def parse_head(head: bytes) -> HttpRequest:
    """Return a request; raise BadRequest with the status that answers it."""
    lines = head.decode("latin-1").split("\r\n")
    while lines and not lines[-1]:
        lines.pop()
    line = _LINE.fullmatch(lines[0]) if lines else None
    if line is None:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.0 or HTTP/1.1")
    method, target, minor = line[1], line[2], line[3]
    if method not in METHODS:
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED, "the method must be GET or HEAD")
    fields: dict[str, str] = {}
    for each in lines[1:]:
        field = _FIELD.fullmatch(each)
        if field is None or not each.isprintable():
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"malformed field {each[:64]!r}")
        name = field[1].lower()
        if name in fields and name in ("host", "authorization", "content-length"):
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"{name} is given twice")
        fields[name] = f"{fields[name]}, {field[2]}" if name in fields else field[2]
    if minor == "1" and "host" not in fields:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "the field Host is missing")
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        raise BadRequest(HTTPStatus.BAD_REQUEST, "the request must have no body")
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "the target must be a path")
    connection = {part.strip().lower() for part in fields.get("connection", "").split(",")}
    return HttpRequest(
        method,
        unquote(path, errors="replace"),
        parse_qs(query, keep_blank_values=True, errors="replace"),
        fields,
        keeps_alive="close" not in connection if minor == "1" else "keep-alive" in connection,
        chunked=minor == "1",
    )


def weight(accepted: str, media_type: str) -> float:
    """Return how much a media type is wanted by a field Accept: the most specific entry counts."""
    wanted, best = 0.0, 0
    group = media_type.split("/")[0]
    for part in accepted.split(","):
        name = part.split(";")[0].strip().lower()
        specific = {media_type: 3, f"{group}/*": 2, "*/*": 1}.get(name, 0)
        # Versions of a media type are entries of their own: the best one counts.
        if specific > best or (specific and specific == best and _weight_of(part) > wanted):
            wanted, best = _weight_of(part), specific
    return wanted


def _weight_of(part: str) -> float:
    for parameter in part.split(";")[1:]:
        found = _WEIGHT.fullmatch(parameter.strip().lower())
        if found is not None:
            return float(found[1])
    return 1.0

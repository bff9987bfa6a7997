"""The fields of a form: read within limits, and only with the session's token."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from barnabas.console.session import Session

BODY_BYTES_MAX = 2 * 1024 * 1024
FIELDS_MAX = 2000
TOKEN_FIELD = "_token"

EnumType = TypeVar("EnumType", bound=IntEnum)


class Form:
    """The fields of one form, in order; a name may occur several times."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.fields = fields

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return next((value for each, value in self.fields if each == name), default)

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for each, value in self.fields if each == name]

    def __contains__(self, name: str) -> bool:
        return any(each == name for each, _ in self.fields)

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Return the fields whose names begin with a prefix, without it."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.fields
            if name.startswith(prefix)
        }


async def read_form(request: Request, session: Session) -> Form:
    """Return a form; raise HTTPException: 400, 403, 413 or 415."""
    form = await read_fields(request)
    if not session.accepts(form.get(TOKEN_FIELD)):
        raise HTTPException(
            403, "This form is not from your session, or the session has ended. Load it again."
        )
    return form


async def read_fields(request: Request) -> Form:
    """Return a form whose token is not checked; only the log-in needs this."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "A form must be application/x-www-form-urlencoded.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413, f"A form may have {BODY_BYTES_MAX} bytes.")
    try:
        fields = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except (UnicodeDecodeError, ValueError) as failure:
        raise HTTPException(400, "The form is unreadable.") from failure
    # Browsers send text areas with CRLF.
    return Form([(name, value.replace("\r\n", "\n")) for name, value in fields])


def member_of(kind: type[EnumType], name: str) -> EnumType:
    """Return the member of an enumeration; raise HTTPException(400)."""
    try:
        return kind[name]
    except KeyError:
        raise HTTPException(400, f"{name[:40]!r} is not a {kind.__name__}.") from None

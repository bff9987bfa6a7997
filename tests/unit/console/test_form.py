"""Fields of forms; what is rejected is tested with hostile input."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from barnabas.console import form as module
from barnabas.console.form import Form, read_fields


def request(*pieces: bytes, kind: str = "application/x-www-form-urlencoded") -> Request:
    waiting = list(pieces)

    async def receive() -> dict[str, Any]:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


def test_fields_keep_their_order_and_repeat() -> None:
    form = asyncio.run(read_fields(request(b"a=1&b=", b"&a=2+%C3%A4%0D%0A&x.y=3")))
    assert form.fields == [("a", "1"), ("b", ""), ("a", "2 ä\n"), ("x.y", "3")]
    assert (form.get("a"), form.get("b", "no"), form.get("c", "no")) == ("1", "", "no")
    assert form.all("a") == ["1", "2 ä\n"]
    assert "b" in form
    assert "c" not in form
    assert form.prefixed("x.") == {"y": "3"}
    assert Form([]).all("a") == []


def test_a_body_is_read_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_BYTES_MAX", 10)
    with pytest.raises(HTTPException) as rejected:
        asyncio.run(read_fields(request(b"a=12345", b"67890", b"never read")))
    assert rejected.value.status_code == 413


def test_a_parameter_of_the_type_is_no_problem() -> None:
    given = request(b"a=1", kind="application/x-www-form-urlencoded; charset=UTF-8")
    assert asyncio.run(read_fields(given)).get("a") == "1"

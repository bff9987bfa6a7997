"""What all spans of a client have in common, and the user's hooks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("opentelemetry", reason="needs opentelemetry-api")

from opentelemetry import trace

from barnabas.opentelemetry.conventions import Conventions
from barnabas.opentelemetry.settings import ClientIdentity, await_hook, call_hook

OLD, NEW = Conventions(True, False), Conventions(False, True)


def identity(*servers: str, group: str | None = None, cluster: str | None = None) -> ClientIdentity:
    return ClientIdentity("web", group, servers, lambda: cluster)


def test_addresses() -> None:
    two = identity("a:9092", "[::1]:9093", group="g", cluster="c")
    assert two.attributes(OLD) == {
        "messaging.system": "kafka",
        "messaging.client.id": "web",
        "messaging.consumer.group.name": "g",
        "messaging.kafka.cluster.id": "c",
        "server.address": '["a:9092", "[::1]:9093"]',
    }
    assert identity("[::1]:9093").attributes(NEW) == {
        "messaging.system": "kafka",
        "messaging.client.id": "web",
        "server.address": "::1",
        "server.port": 9093,
    }
    for odd in ("", "host"):
        assert "server.port" not in identity(odd).attributes(NEW)
    assert "server.address" not in identity().attributes(NEW)


def test_hooks_get_the_span_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    async def also(*arguments: Any) -> None:
        seen.append(arguments)

    async def fails(*_: Any) -> None:
        raise RuntimeError("in a coroutine")

    def refuses(*_: Any) -> None:
        raise RuntimeError("in a function")

    async def program() -> None:
        for hook in (None, also, fails):
            await await_hook(hook, trace.INVALID_SPAN, 2)

    for hook in (None, lambda *arguments: seen.append(arguments), refuses):
        call_hook(hook, trace.INVALID_SPAN, 1)
    asyncio.run(program())
    assert seen == [(trace.INVALID_SPAN, 1), (trace.INVALID_SPAN, 2)]
    assert "in a coroutine" in caplog.text
    assert "in a function" in caplog.text

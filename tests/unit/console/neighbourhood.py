"""Two brokers in one process, each with a console of its own that is asked without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
from tests.unit.broker import neighbours
from tests.unit.console.site import HOST, TOKEN, confirmation, text_of

from barnabas.broker.broker import Broker
from barnabas.cli.console_part import BrokerConsole
from barnabas.console.address import ConsoleAddress
from barnabas.console.app import build_app
from barnabas.console.client import DoorClient
from barnabas.coordination.memory import MemoryStore

ADDRESS = ConsoleAddress("127.0.0.1", 8080)
Scenario = Callable[["House", "House"], Awaitable[None]]


@dataclass(slots=True)
class House:
    """A broker, and a browser at its console."""

    broker: Broker
    console: BrokerConsole
    browser: httpx.AsyncClient

    @property
    def client(self) -> DoorClient:
        """An admin client through this console's door."""
        door = self.console._door
        return DoorClient(door, door.anonymous("127.0.0.1"))

    async def page(self, path: str) -> str:
        """Load a page that must be there; return what one reads of it."""
        return text_of(await self.source(path))

    async def source(self, path: str) -> str:
        """Load a page that must be there."""
        answer = await self.browser.get(path)
        assert answer.status_code == 200, (answer.status_code, text_of(answer.text))
        return answer.text

    async def rows(self, path: str) -> list[dict[str, object]]:
        """Load a list as JSON; return its rows."""
        answer = await self.browser.get(path)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, object]] = answer.json()["rows"]
        return found

    async def preview(self, path: str, **fields: str) -> httpx.Response:
        """Send a form with the session's token."""
        token = TOKEN.search(await self.source("/"))
        assert token is not None
        return await self._post(path, [("_token", token[1]), *fields.items()])

    async def do(self, path: str, **fields: str) -> str:
        """Preview an action, and confirm what the preview shows; return what came of it."""
        shown = await self.preview(path, **fields)
        assert shown.status_code == 200, text_of(shown.text)
        target, pairs = confirmation(shown.text)
        done = await self._post(target, pairs)
        assert done.status_code in (200, 303), text_of(done.text)
        return text_of(done.text)

    async def _post(self, path: str, pairs: list[tuple[str, str]]) -> httpx.Response:
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
        }
        return await self.browser.post(path, content=urlencode(pairs), headers=headers)


@asynccontextmanager
async def _living(folder: Path, options: Mapping[str, str]) -> AsyncIterator[tuple[House, House]]:
    store = MemoryStore()
    brokers = [
        neighbours.broker(store, folder, number, offsets_topic_replication_factor="1", **options)
        for number in (0, 1)
    ]
    houses = []
    try:
        for broker in brokers:
            await broker.start()
        await neighbours.until(
            lambda: all(len(each.cluster.brokers) == 2 for each in brokers), "both know both"
        )
        for broker in brokers:
            console = BrokerConsole(broker, ADDRESS)
            await console.window.look()
            app = build_app(console._door, console.window, ADDRESS)
            transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 50_000))  # type: ignore[arg-type]
            browser = httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}")
            houses.append(House(broker, console, browser))
        yield houses[0], houses[1]
    finally:
        for house in houses:
            await house.browser.aclose()
            await house.console.stop()
        for broker in reversed(brokers):
            await broker.stop()


def play(folder: Path, scenario: Scenario, **options: str) -> None:
    """Run a scenario with two brokers, of which the first is the controller."""

    async def run() -> None:
        async with asyncio.timeout(120), _living(folder, options) as (first, second):
            await scenario(first, second)

    asyncio.run(run())

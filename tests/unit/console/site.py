"""A console in front of a real broker, asked without a socket.

The broker runs on a thread of its own; requests are handled on its loop, as they are in production.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping
from html import unescape
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import httpx
from tests.unit.broker.serving import DEADLINE_S, Serving, batch_of, produce_request

from barnabas.admin.group_offsets import commit_offsets
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.broker.door.door import BrokerDoor
from barnabas.cli.console_part import BrokerConsole
from barnabas.console.address import ConsoleAddress
from barnabas.console.app import build_app
from barnabas.console.client import DoorClient
from barnabas.console.door import Visitor
from barnabas.model.ids import TopicPartition
from barnabas.model.visitor import Mode

T = TypeVar("T")
HOST = "127.0.0.1:8080"
ORIGIN = f"http://{HOST}"
ADMIN = Visitor("User:admin", "127.0.0.1")
TOKEN = re.compile(r'name="_token" value="([^"]*)"')
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECURED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} username="admin" '
    'password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "connection.failed.authentication.delay.ms": "0",
}
"""Options of a broker with log-ins and an authorizer: alice may do nothing, admin everything."""


class Site:
    """One console, and a browser that remembers its cookies."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, object] | None = None,
        *,
        mode: Mode = Mode.FULL,
        address: ConsoleAddress = ConsoleAddress("127.0.0.1", 8080),  # noqa: B008
    ) -> None:
        self.serving = Serving(directory, options)
        self._mode = mode
        self._address = address
        self.now_s = 1000.0

    def __enter__(self) -> Self:
        self.serving.start()
        self.run(self._open())
        return self

    async def _open(self) -> None:
        broker = self.serving.broker
        self.console = BrokerConsole(broker, self._address)
        self.window = self.console.window
        self.door = BrokerDoor(broker, self._mode)
        self.window.watch()
        await self.window.look()
        app = build_app(self.door, self.window, self._address, now_s=lambda: self.now_s)
        self.app = app
        self.browser = self.new_browser()

    def new_browser(self, host: str = "127.0.0.1") -> httpx.AsyncClient:
        """Return a browser without cookies, on some address."""
        transport = httpx.ASGITransport(app=self.app, client=(host, 50_000))  # type: ignore[arg-type]
        return httpx.AsyncClient(transport=transport, base_url=ORIGIN)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self.browser.aclose())
        self.serving.inside(self.window.unwatch)
        self.serving.inside(self.door.close)
        self.serving.stop()
        if kind is None:
            self.serving.expect_no_lines()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the broker's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.serving.broker.loop).result(DEADLINE_S)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Load a page."""
        return self.run(self.browser.get(path, headers=headers))

    def page(self, path: str) -> str:
        """Load a page that must be there; return its source."""
        answer = self.get(path)
        assert answer.status_code == 200, (answer.status_code, text_of(answer.text))
        return answer.text

    def token(self) -> str:
        """Return the token of the session, as forms carry it."""
        found = TOKEN.search(self.page("/acls"))
        assert found is not None
        return found[1]

    def post(
        self, path: str, fields: Mapping[str, object] | list[tuple[str, str]] = (), **headers: str
    ) -> httpx.Response:
        """Send a form with the session's token, as a browser does from a page of the console."""
        pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
        return self.send(path, [("_token", self.token()), *pairs], **headers)

    def send(self, path: str, pairs: list[tuple[str, Any]], **headers: str) -> httpx.Response:
        """Send a form as it is."""
        given = {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.run(self.browser.post(path, content=urlencode(pairs), headers=given))

    def do(self, path: str, **fields: object) -> httpx.Response:
        """Preview an action, then send exactly the form that its preview has."""
        preview = self.post(path, fields)
        assert preview.status_code == 200, (preview.status_code, text_of(preview.text))
        return self.send(*confirmation(preview.text))

    def log_in(self, name: str, password: str, wanted: str = "/") -> httpx.Response:
        """Log in; the browser keeps the cookie."""
        fields = [("name", name), ("password", password), ("next", wanted)]
        return self.send("/login", fields)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic, as a super user."""
        new = NewTopic(name, partitions, topic_configs=configs)
        [created] = self.run(create_topics(self.client(ADMIN), [new]))
        assert created.error is None, created.error

    def produce(self, topic: str, *values: bytes | str) -> None:
        """Write records to the first partition of a topic, as a super user."""
        request = produce_request(topic, batch_of(values))
        response = self.run(self.door.ask(ADMIN, request, version=9))
        assert response.responses[0].partition_responses[0].error_code == 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of a group without members."""
        offsets = {TopicPartition(topic, 0): offset}
        outcomes = self.run(commit_offsets(self.client(ADMIN), group, offsets))
        assert list(outcomes.values()) == [None]

    def client(self, visitor: Visitor | None = None) -> DoorClient:
        """Return an admin client through the door."""
        return DoorClient(self.door, visitor or self.door.anonymous("127.0.0.1"))


def confirmation(page: str) -> tuple[str, list[tuple[str, str]]]:
    """Return where the form of a preview is sent, and its fields."""
    form = re.search(
        r'<form method="post" action="([^"]*)">((?:(?!</form>).)*name="confirmed".*?)</form>',
        page,
        re.DOTALL,
    )
    assert form is not None, text_of(page)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[2])
    return unescape(form[1]), [(unescape(name), unescape(value)) for name, value in fields]


def text_of(page: str) -> str:
    """Return what one reads of a page."""
    body = page.partition("<main")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))

"""The directory of initial users: read at the start, and followed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.broker.cluster.initial_users import InitialUsers
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.model.errors import ConfigError
from barnabas.security.initial_users import InitialUser


class Store:
    """Remembers whom it was given."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.failure: Exception | None = None

    async def add(self, user: InitialUser) -> bool:
        if self.failure is not None:
            raise self.failure
        self.added.append(user.name)
        return True


def write(directory: Path, name: str) -> Path:
    path = directory / f"{name}.json"
    path.write_text(InitialUser(name, {}).encode())
    return path


def run(directory: Path | None, story: Callable[[InitialUsers, Store], Awaitable[None]]) -> None:
    given = {} if directory is None else {"barnabas.initial.users.dir": str(directory)}
    options = BrokerOptions.parse(given)

    async def told() -> None:
        store = Store()
        await story(InitialUsers(lambda: options, store, None), store)

    asyncio.run(told())


def test_users_are_added_at_the_start_and_when_their_files_appear(tmp_path: Path) -> None:
    async def story(users: InitialUsers, store: Store) -> None:
        assert users.is_used
        await users.start()
        assert store.added == ["ada", "bob"]
        await users.look()
        write(tmp_path, "cid")
        await users.look()
        assert store.added == ["ada", "bob", "cid"]

    for name in ("ada", "bob"):
        write(tmp_path, name)
    (tmp_path / ".ada.json.123").write_text("being written")
    (tmp_path / "README").write_text("not a user")
    run(tmp_path, story)


def test_without_the_option_nothing_is_read() -> None:
    async def story(users: InitialUsers, store: Store) -> None:
        assert not users.is_used
        await users.start()
        await users.look()
        assert store.added == []

    run(None, story)


def test_what_is_unusable_fails_the_start(tmp_path: Path) -> None:
    async def story(users: InitialUsers, store: Store) -> None:
        with pytest.raises(ConfigError, match=r"ada\.json: is not the file of an initial user"):
            await users.start()

    (tmp_path / "ada.json").write_text("{}")
    run(tmp_path, story)

    async def missing(users: InitialUsers, store: Store) -> None:
        with pytest.raises(ConfigError, match=r"barnabas\.initial\.users\.dir=.*: cannot be read"):
            await users.start()

    run(tmp_path / "nowhere", missing)


def test_later_it_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(users: InitialUsers, store: Store) -> None:
        await users.start()
        path = tmp_path / "ada.json"
        path.write_text("{}")
        await users.look()
        await users.look()
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        write(tmp_path, "ada")
        await users.look()
        assert store.added == ["ada"]

    with caplog.at_level(logging.WARNING):
        run(tmp_path, story)


def test_a_tree_out_of_reach_is_tried_again(tmp_path: Path) -> None:
    async def story(users: InitialUsers, store: Store) -> None:
        store.failure = ServiceUnavailable("gone")
        await users.look()
        store.failure = None
        await users.look()
        assert store.added == ["ada"]

    write(tmp_path, "ada")
    run(tmp_path, story)

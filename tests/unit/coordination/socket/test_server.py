"""What a tree that is served over a socket adds to the contract: peers that die, hang or lie."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from tests.unit.coordination.socket.serving import connect, ended, served

from barnabas.coordination.contract import Event, EventType
from barnabas.coordination.embedded import EmbeddedStore
from barnabas.coordination.memory import MemoryStore
from barnabas.coordination.socket.messages import Call, TreeRequest, frame_of
from barnabas.coordination.socket.server import TreeServer
from barnabas.coordination.socket.session import SocketCoordination
from barnabas.model.errors import ConfigError, StorageError


def lose(session: SocketCoordination) -> None:
    """End a session's connection as the end of its process does."""
    assert session._connection is not None
    session._connection._transport.abort()


async def test_the_nodes_of_a_process_that_dies_are_deleted_at_once(tmp_path: Path) -> None:
    async with served(EmbeddedStore(tmp_path / "tree.db"), tmp_path) as server:
        one, two = await connect(server), await connect(server)
        await one.create("/live", b"", ephemeral=True)
        heard: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        await two.exists("/live", heard.set_result)
        lose(one)
        assert await heard == Event(EventType.DELETED, "/live")
        await ended(one)
        assert await two.exists("/live") is None
        old = one.session_id
        await one.start()
        assert one.session_id > old
        await one.create("/live", ephemeral=True)
        await one.close()
        await two.close()


async def test_a_server_that_was_suspended_gives_everybody_time(tmp_path: Path) -> None:
    store = MemoryStore()
    async with served(store, tmp_path) as server:
        one = await connect(server, timeout_ms=40_000)
        due_ms = store.tree.next_expiry_ms()
        assert due_ms is not None
        store._expire_due(due_ms - 41_000)  # a timer that runs long after it was due
        assert one.session_id in store.tree.sessions
        assert await one.exists("/") is not None
        await one.close()


async def test_what_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    async with served(EmbeddedStore(tmp_path / "tree.db"), tmp_path) as server:
        one = await connect(server)
        await one.create("/kept", b"data")
        await one.create("/live", ephemeral=True)
        zxid = (await one.exists("/live")).czxid  # type: ignore[union-attr]
        await one.close()
    async with served(EmbeddedStore(tmp_path / "tree.db"), tmp_path) as server:
        one = await connect(server)
        assert (await one.get("/kept"))[0] == b"data"
        assert await one.exists("/live") is None
        await one.create("/live", ephemeral=True)
        assert (await one.exists("/live")).czxid > zxid  # type: ignore[union-attr]
        await one.close()


async def test_only_its_user_may_connect_and_only_one_server_serves(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with served(EmbeddedStore(tmp_path / "tree.db"), tmp_path) as server:
            assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
            second = TreeServer(EmbeddedStore(tmp_path / "tree.db"), tmp_path / "tree.sock")
            with pytest.raises(StorageError, match="locked"):
                await second.start()
            await (await connect(server)).close()  # the first one's socket is still there
    finally:
        os.umask(before)


async def test_a_stale_socket_is_replaced_and_a_bad_path_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree.sock").touch()
    async with served(MemoryStore(), tmp_path) as server:
        await (await connect(server)).close()
    missing = TreeServer(MemoryStore(), tmp_path / "missing" / "tree.sock")
    with pytest.raises(ConfigError, match=r"cannot listen on .*missing/tree\.sock"):
        await missing.start()


BEGIN = frame_of(TreeRequest(call=Call.BEGIN, timeout_ms=40_000))


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x03abc",
        frame_of(TreeRequest(call=Call.GET, paths=["/"])),
        BEGIN + BEGIN,
        BEGIN + frame_of(TreeRequest(call=Call.MULTI, make_parents=True)),
        BEGIN + frame_of(TreeRequest(call=Call.CHILDREN, paths=["/", "/"])),
    ],
)
async def test_what_cannot_be_read_ends_that_connection_alone(tmp_path: Path, sent: bytes) -> None:
    async with served(MemoryStore(), tmp_path) as server:
        one = await connect(server)
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(sent)
        try:
            while await reader.read(1000):
                pass
        except ConnectionResetError:
            pass
        writer.close()
        assert await one.create("/still-served") == "/still-served"
        assert set(server._store.tree.sessions) == {one.session_id}
        await one.close()


async def test_half_a_frame_holds_up_nobody(tmp_path: Path) -> None:
    async with served(MemoryStore(), tmp_path) as server:
        _, writer = await asyncio.open_unix_connection(server.path)
        writer.write(BEGIN[:-3])
        one = await connect(server)
        assert await one.create("/a") == "/a"
        await one.close()
        writer.close()


async def test_a_path_that_no_client_of_ours_sends_is_an_error_of_that_request(
    tmp_path: Path,
) -> None:
    async with served(MemoryStore(), tmp_path) as server:
        one = await connect(server)
        assert one._connection is not None
        with pytest.raises(ValueError, match="not a node path"):
            await one._connection.ask(TreeRequest(call=Call.EXISTS, paths=["//"]))
        assert await one.children("/") == []
        await one.close()

"""What the store in a file adds to the contract: durability, grouped commits, clear failures."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import time
from pathlib import Path

import pytest

from barnabas.coordination.contract import Create, Event, EventType, NodeExists
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.model.errors import CorruptFileError, StorageError


async def connect(store: EmbeddedStore) -> EmbeddedCoordination:
    session = EmbeddedCoordination(store)
    await session.start()
    return session


async def test_what_was_written_is_there_after_reopening(tmp_path: Path):
    path = tmp_path / "coordination.db"
    one = await connect(EmbeddedStore(path))
    await one.create("/brokers/ids", make_parents=True)
    await one.create("/brokers/ids/0", b"me", ephemeral=True)
    await one.create("/q", b"\x00\xff")
    await one.create("/q/n", sequence=True)
    await one.create("/gone")
    await one.delete("/gone")
    stat = await one.set("/q", b"\xff\x00")
    epoch = (await one.exists("/brokers/ids/0")).czxid
    await one.close()

    two = await connect(EmbeddedStore(path))
    assert await two.children("/") == ["brokers", "q"]
    assert await two.children("/brokers/ids") == []
    assert await two.get("/q") == (b"\xff\x00", stat)
    assert await two.create("/q/n", sequence=True) == "/q/n0000000001"
    await two.create("/brokers/ids/0", ephemeral=True)
    assert (await two.exists("/brokers/ids/0")).czxid > epoch, "the broker epoch must grow"
    await two.close()


async def test_an_answer_means_that_the_file_has_it(tmp_path: Path):
    """Reads what another process would find after a kill: copies of both files at each answer."""
    path = tmp_path / "coordination.db"
    one = await connect(EmbeddedStore(path))
    for number in range(5):
        await one.create(f"/n{number}")
        copy = tmp_path / f"copy{number}.db"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        found = await connect(EmbeddedStore(copy))
        assert await found.children("/") == [f"n{i}" for i in range(number + 1)]
        await found.close()
    await one.close()


async def test_a_read_waits_for_the_write_that_it_saw(tmp_path: Path):
    store = EmbeddedStore(tmp_path / "coordination.db")
    one, two = await connect(store), await connect(store)
    creating = asyncio.ensure_future(one.create("/a"))
    await asyncio.sleep(0)
    with pytest.raises(NodeExists):
        await two.create("/a")
    assert store.commits == 1
    assert await creating == "/a"
    creating = asyncio.ensure_future(one.create("/b"))
    await asyncio.sleep(0)
    assert await two.children("/") == ["a", "b"]
    assert store.commits == 2
    await creating
    await one.close()
    await two.close()


async def test_concurrent_writes_share_commits(tmp_path: Path):
    store = EmbeddedStore(tmp_path / "coordination.db")
    one = await connect(store)
    await one.create("/brokers/topics", make_parents=True)

    async def create_topic(name: str) -> None:
        await one.create(f"/config/topics/{name}", b"{}", make_parents=True)
        await one.multi(
            [
                Create(f"/brokers/topics/{name}", b"{}"),
                Create(f"/brokers/topics/{name}/partitions"),
                Create(f"/brokers/topics/{name}/partitions/0"),
            ]
        )
        await one.create(f"/brokers/topics/{name}/partitions/0/state", b"{}")

    await asyncio.gather(*(create_topic(f"t{number}") for number in range(1000)))
    assert store.commits < 20
    assert (await one.exists("/brokers/topics")).num_children == 1000
    await one.close()


async def test_ten_thousand_nodes_load_in_milliseconds(tmp_path: Path):
    path = tmp_path / "coordination.db"
    one = await connect(EmbeddedStore(path))
    await one.multi([Create("/n"), *(Create(f"/n/{i}", b"x" * 100) for i in range(10_000))])
    await one.close()
    two = EmbeddedCoordination(EmbeddedStore(path))
    began = time.process_time()  # of all threads: others' use of the machine does not count
    await two.start()
    took_ms = (time.process_time() - began) * 1000
    assert (await two.exists("/n")).num_children == 10_000
    # About 40 ms on a slow core; the bound only catches a change of kind.
    assert took_ms < 1000
    await two.close()


async def test_the_file_opens_with_the_first_session_and_closes_with_the_last(tmp_path: Path):
    path = tmp_path / "coordination.db"
    store = EmbeddedStore(path)
    one, two = await asyncio.gather(connect(store), connect(store))
    await one.create("/a")
    await one.close()
    assert await two.children("/") == ["a"]
    with pytest.raises(StorageError, match=r"coordination\.db.*locked"):
        await connect(EmbeddedStore(path))
    await two.close()
    three = await connect(EmbeddedStore(path))
    assert await three.children("/") == ["a"]
    await three.close()
    again = await connect(store)
    assert await again.children("/") == ["a"]
    await again.close()


def break_header(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def break_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)
    path.write_bytes(data)


def change_format(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def orphan_a_node(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM node WHERE path = '/a'")
    connection.close()


def lose_the_transaction_id(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM last_transaction")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [break_header, break_middle, change_format, orphan_a_node, lose_the_transaction_id],
)
async def test_a_file_that_cannot_be_trusted_is_refused_by_name(tmp_path: Path, damage):
    path = tmp_path / "coordination.db"
    one = await connect(EmbeddedStore(path))
    await one.create("/a/b", b"x" * 20_000, make_parents=True)
    await one.close()
    damage(path)
    with pytest.raises(CorruptFileError, match=r"coordination\.db"):
        await connect(EmbeddedStore(path))


async def test_nobody_else_may_read_the_tree(tmp_path: Path):
    """It has credentials; a file from before that was considered is protected when it is opened."""
    path = tmp_path / "coordination.db"
    path.touch(0o644)
    path.chmod(0o644)
    store = await connect(EmbeddedStore(path))
    await store.create("/a")
    for each in (path, f"{path}-wal"):
        assert stat.S_IMODE(os.stat(each).st_mode) == 0o600, each
    await store.close()


async def test_a_missing_folder_is_a_storage_error(tmp_path: Path):
    with pytest.raises(StorageError, match=r"nowhere.coordination\.db"):
        await connect(EmbeddedStore(tmp_path / "nowhere" / "coordination.db"))


async def test_a_failed_commit_undoes_its_writes_and_those_after_it(tmp_path: Path):
    path = tmp_path / "coordination.db"
    store = EmbeddedStore(path)
    one, two = await connect(store), await connect(store)
    await one.create("/kept", b"old")
    await one.create("/mine", ephemeral=True)
    events: list[Event] = []
    await two.get("/kept", events.append)

    connection = store._file._connection
    [(pages,)] = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    first = asyncio.ensure_future(one.set("/kept", b"x" * 500_000))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # The commit is in the executor; what follows joins the next one.
    calls = [first, one.create("/after"), two.get("/kept"), two.create("/e", ephemeral=True)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        assert isinstance(result, StorageError)
        assert "coordination.db" in str(result)
        assert "full" in str(result)
    assert (await two.get("/kept"))[0] == b"old"
    assert await two.children("/") == ["kept", "mine"]
    assert events == [Event(EventType.CHANGED, "/kept")], "spent watches are told, to reread"

    connection.execute("PRAGMA max_page_count = 1000000")
    await one.set("/kept", b"x" * 500_000)
    await one.close()
    await two.close()
    three = await connect(EmbeddedStore(path))
    assert (await three.get("/kept"))[0] == b"x" * 500_000
    await three.close()

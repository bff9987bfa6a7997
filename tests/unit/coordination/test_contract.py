"""What every coordination service promises, checked on each implementation."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.coordination.contract import (
    DATA_SIZE_MAX,
    BadVersion,
    Check,
    Create,
    Delete,
    Event,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    check_path,
    parent_of,
    parents_of,
)
from barnabas.model.errors import InvalidValueError


async def told(session):
    """Return once all that this session was to be told before now has been told."""
    await session.exists("/")


async def test_a_node_keeps_its_data_and_counts_its_versions(service):
    one = await service.connect()
    assert await one.create("/a", b"first") == "/a"
    data, created = await one.get("/a")
    assert (data, created.version, created.ephemeral_owner) == (b"first", 0, 0)
    assert created.czxid == created.mzxid > 0
    changed = await one.set("/a", b"second")
    assert changed.version == 1
    assert changed.czxid == created.czxid
    assert changed.mzxid > created.mzxid
    assert await one.get("/a") == (b"second", changed)
    assert await one.exists("/a") == changed
    await one.delete("/a")
    assert await one.exists("/a") is None
    await one.close()


async def test_a_recreated_node_has_a_higher_czxid_and_version_zero(service):
    one = await service.connect()
    await one.create("/a")
    await one.set("/a", b"x")
    before = await one.exists("/a")
    await one.delete("/a")
    await one.create("/a")
    after = await one.exists("/a")
    assert after.czxid > before.mzxid
    assert after.version == 0
    await one.close()


async def test_each_refusal_has_its_own_error(service):
    one = await service.connect()
    await one.create("/a/b", make_parents=True)
    with pytest.raises(NodeExists, match="/a/b already exists"):
        await one.create("/a/b")
    with pytest.raises(NoNode):
        await one.create("/missing/child")
    for call in (one.get, one.children, one.delete):
        with pytest.raises(NoNode, match="/missing does not exist") as caught:
            await call("/missing")
        assert caught.value.path == "/missing"
    with pytest.raises(NoNode):
        await one.set("/missing", b"")
    with pytest.raises(NotEmpty):
        await one.delete("/a")
    with pytest.raises(BadVersion, match="version 0, not 3"):
        await one.set("/a/b", b"", version=3)
    with pytest.raises(BadVersion):
        await one.delete("/a/b", version=1)
    await one.create("/e", ephemeral=True)
    with pytest.raises(NoChildrenForEphemerals):
        await one.create("/e/child")
    assert await one.children("/") == ["a", "e"]
    await one.close()


async def test_versions_guard_set_and_delete(service):
    one = await service.connect()
    await one.create("/a")
    assert (await one.set("/a", b"1", version=0)).version == 1
    with pytest.raises(BadVersion):
        await one.set("/a", b"2", version=0)
    assert (await one.get("/a"))[0] == b"1"
    await one.delete("/a", version=1)
    assert await one.exists("/a") is None
    await one.close()


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\0b"])
async def test_a_bad_path_is_refused(service, path):
    one = await service.connect()
    for call in (one.create, one.get, one.exists, one.children, one.delete):
        with pytest.raises(InvalidValueError, match="not a node path"):
            await call(path)
    await one.close()


async def test_a_node_holds_at_most_a_mebibyte(service):
    one = await service.connect()
    await one.create("/a", b"x" * DATA_SIZE_MAX)
    with pytest.raises(InvalidValueError, match="1048577 bytes"):
        await one.create("/b", b"x" * (DATA_SIZE_MAX + 1))
    with pytest.raises(InvalidValueError):
        await one.set("/a", b"x" * (DATA_SIZE_MAX + 1))
    assert len((await one.get("/a"))[0]) == DATA_SIZE_MAX
    await one.close()


async def test_the_root_exists_and_stays(service):
    one = await service.connect()
    assert await one.children("/") == []
    with pytest.raises(NodeExists):
        await one.create("/")
    with pytest.raises(InvalidValueError, match="root"):
        await one.delete("/")
    await one.close()


async def test_sequential_names_only_grow(service):
    one = await service.connect()
    await one.create("/q")
    assert await one.create("/q/n_", sequence=True) == "/q/n_0000000000"
    assert await one.create("/q/n_", sequence=True) == "/q/n_0000000001"
    await one.delete("/q/n_0000000001")
    third = await one.create("/q/n_", b"x", sequence=True, ephemeral=True)
    assert third > "/q/n_0000000001"
    assert (await one.get(third))[1].ephemeral_owner == one.session_id
    assert await one.children("/q") == ["n_0000000000", third.removeprefix("/q/")]
    await one.close()


async def test_make_parents_creates_what_is_missing_above(service):
    one = await service.connect()
    await one.create("/a", b"kept")
    await one.create("/a/b/c/d", b"leaf", make_parents=True)
    assert (await one.get("/a"))[0] == b"kept"
    assert await one.get("/a/b/c") == (b"", (await one.exists("/a/b/c")))
    assert (await one.get("/a/b/c/d"))[0] == b"leaf"
    assert (await one.exists("/a/b")).num_children == 1
    with pytest.raises(NodeExists):
        await one.create("/a/b/c/d", make_parents=True)
    await one.close()


async def test_ephemeral_nodes_go_when_their_session_closes(service):
    one, two = await service.connect(), await service.connect()
    await one.create("/live/1", make_parents=True, ephemeral=True)
    await two.create("/live/2", ephemeral=True)
    assert (await two.exists("/live/1")).ephemeral_owner == one.session_id
    assert (await two.exists("/live")).ephemeral_owner == 0
    await one.close()
    assert await two.children("/live") == ["2"]
    await two.close()


async def test_an_expired_session_loses_its_nodes_and_every_call(service):
    one, two = await service.connect(), await service.connect()
    states: list[SessionState] = []
    one.add_session_listener(states.append)
    await one.create("/e", ephemeral=True)
    await one.create("/p")
    old = one.session_id
    await service.expire(one)
    for call in (one.get, one.exists, one.children, one.delete, one.create):
        with pytest.raises(SessionExpired):
            await call("/p")
    assert one.state is SessionState.EXPIRED
    assert await two.children("/") == ["p"]
    await one.start()
    assert one.session_id != old
    await one.create("/e", ephemeral=True)
    await told(one)
    # A service that is out of reach for a moment says so first.
    final = [state for state in states if state is not SessionState.SUSPENDED]
    assert final == [SessionState.EXPIRED, SessionState.CONNECTED]
    heard = len(states)
    one.remove_session_listener(states.append)
    one.remove_session_listener(states.append)
    await one.close()
    assert len(states) == heard
    await two.close()


async def test_a_session_that_is_not_open_can_do_nothing(service):
    one = await service.connect()
    await one.start()
    session_id = one.session_id
    assert one.state is SessionState.CONNECTED
    await one.close()
    await one.close()
    assert one.state is SessionState.CLOSED
    with pytest.raises(SessionExpired, match=str(session_id)):
        await one.exists("/")


async def test_multi_does_all_in_one_transaction(service):
    one = await service.connect()
    await one.create("/epoch", b"1")
    results = await one.multi(
        [
            Check("/epoch", 0),
            Create("/controller", b"me", ephemeral=True),
            Set("/epoch", b"2", version=0),
            Create("/list"),
            Create("/list/n", sequence=True),
            Delete("/list/n0000000000"),
        ]
    )
    epoch = await one.exists("/epoch")
    assert results == [None, "/controller", epoch, "/list", "/list/n0000000000", None]
    assert (
        epoch.mzxid == (await one.exists("/controller")).czxid == (await one.exists("/list")).czxid
    )
    assert await one.multi([]) == []
    await one.close()


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Check("/epoch", 7), BadVersion),
        (Check("/none"), NoNode),
        (Create("/epoch"), NodeExists),
        (Set("/epoch", b"", 3), BadVersion),
        (Delete("/full"), NotEmpty),
        (Create("bad"), InvalidValueError),
    ],
)
async def test_multi_that_fails_leaves_no_trace(service, last, error):
    one = await service.connect()
    await one.create("/epoch", b"1")
    await one.create("/full/child", make_parents=True)
    events: list[Event] = []
    before = await one.get("/epoch", events.append), await one.children("/", events.append)
    with pytest.raises(error):
        await one.multi(
            [
                Set("/epoch", b"2"),
                Create("/new", ephemeral=True),
                Create("/full/n", sequence=True),
                Delete("/full/n0000000001"),
                last,
            ]
        )
    assert (await one.get("/epoch"), await one.children("/")) == before
    assert await one.create("/full/n", sequence=True) == "/full/n0000000001"
    assert events == []
    await one.close()
    two = await service.connect()
    assert await two.exists("/new") is None
    await two.close()


async def test_watches_tell_what_happened_once(service):
    one, two = await service.connect(), await service.connect()
    events: list[Event] = []
    assert await two.exists("/a", events.append) is None
    await one.create("/a")
    await told(two)
    assert events == [Event(EventType.CREATED, "/a")]
    await one.set("/a", b"x")
    await told(two)
    assert len(events) == 1, "a watch fires once"

    await two.get("/a", events.append)
    await one.set("/a", b"y")
    await two.get("/a", events.append)
    await one.delete("/a")
    await told(two)
    assert events[1:] == [Event(EventType.CHANGED, "/a"), Event(EventType.DELETED, "/a")]
    await one.close()
    await two.close()


async def test_child_watches_tell_of_names_and_not_of_data(service):
    one, two = await service.connect(), await service.connect()
    events: list[Event] = []
    await one.create("/a")
    await two.children("/a", events.append)
    await one.set("/a", b"x")
    await one.create("/b")
    await told(two)
    assert events == []
    await one.create("/a/child")
    await two.children("/a", events.append)
    await one.set("/a/child", b"x")
    await one.delete("/a/child")
    await two.children("/a", events.append)
    await one.delete("/a")
    await told(two)
    assert events == [
        Event(EventType.CHILDREN, "/a"),
        Event(EventType.CHILDREN, "/a"),
        Event(EventType.DELETED, "/a"),
    ]
    await one.close()
    await two.close()


async def test_the_same_watch_left_twice_fires_once(service):
    one = await service.connect()
    events: list[Event] = []
    await one.create("/a")
    await one.get("/a", events.append)
    await one.exists("/a", events.append)
    await one.children("/a", events.append)
    await one.delete("/a")
    await told(one)
    assert events == [Event(EventType.DELETED, "/a")]
    await one.close()


async def test_a_failed_read_leaves_no_watch(service):
    one = await service.connect()
    events: list[Event] = []
    for call in (one.get, one.children):
        with pytest.raises(NoNode):
            await call("/a", events.append)
    await one.create("/a")
    await told(one)
    assert events == []
    await one.close()


async def test_the_end_of_a_session_fires_the_watches_of_others_only(service):
    one, two = await service.connect(), await service.connect()
    mine: list[Event] = []
    theirs: list[Event] = []
    await one.create("/controller", ephemeral=True)
    await one.exists("/controller", mine.append)
    await one.children("/", mine.append)
    await two.exists("/controller", theirs.append)
    await service.expire(one)
    await told(two)
    assert theirs == [Event(EventType.DELETED, "/controller")]
    await one.start()
    await one.create("/controller")
    await told(one)
    assert mine == []
    await one.close()
    await two.close()


async def test_a_session_hears_of_a_change_before_it_sees_it(service):
    writer, reader = await service.connect(), await service.connect()
    await writer.create("/n", b"0")
    heard = 0
    seen: list[tuple[int, int]] = []

    def hear(event: Event) -> None:
        nonlocal heard
        heard += 1

    async def read() -> None:
        while True:
            _, stat = await reader.get("/n")
            seen.append((stat.version, heard))
            if stat.version == 20:
                return
            await reader.get("/n", hear)

    async def write() -> None:
        for number in range(1, 21):
            await writer.set("/n", b"%d" % number)
            await asyncio.sleep(0)

    await reader.get("/n", hear)
    await asyncio.gather(read(), write())
    assert seen[-1][0] == 20
    first = {}
    for version, told_before in seen:
        first.setdefault(version, told_before)
    assert all(first[version] > 0 for version in first if version > 0)
    assert [version for version, _ in seen] == sorted(version for version, _ in seen)
    await writer.close()
    await reader.close()


async def test_watches_come_in_the_order_of_the_changes(service):
    one, two = await service.connect(), await service.connect()
    events: list[Event] = []
    for number in range(10):
        await two.exists(f"/n{number}", events.append)
    order = [7, 1, 9, 0, 4, 3, 8, 2, 6, 5]
    await asyncio.gather(*(one.create(f"/n{number}") for number in order))
    await told(two)
    assert events == [Event(EventType.CREATED, f"/n{number}") for number in order]
    await one.close()
    await two.close()


async def test_concurrent_increments_with_versions_lose_nothing(service):
    sessions = [await service.connect() for _ in range(4)]
    await sessions[0].create("/counter", b"0")
    retries = 0

    async def increment(session) -> None:
        nonlocal retries
        for _ in range(10):
            while True:
                data, stat = await session.get("/counter")
                try:
                    await session.set("/counter", b"%d" % (int(data) + 1), stat.version)
                    break
                except BadVersion:
                    retries += 1

    await asyncio.gather(*(increment(session) for session in sessions))
    data, stat = await sessions[0].get("/counter")
    assert data == b"40"
    assert stat.version == 40
    assert retries > 0, "the sessions were meant to contend"
    for session in sessions:
        await session.close()


async def test_a_cancelled_call_does_no_harm_to_the_others(service):
    one = await service.connect()
    waiting = asyncio.ensure_future(one.create("/a"))
    await asyncio.sleep(0)
    waiting.cancel()
    await one.create("/b")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await one.children("/") == ["a", "b"]
    await one.close()


def test_paths_know_their_parents():
    assert parent_of("/a/b") == "/a"
    assert parent_of("/a") == "/"
    assert parents_of("/a/b/c") == ["/a", "/a/b"]
    assert parents_of("/a") == []
    assert check_path("/brokers/topics/t.x") == "/brokers/topics/t.x"
    assert Stat(1, 2, 3, 0, 4).num_children == 4


@pytest.mark.parametrize(
    "character", ["\0", "\x1f", "\x7f", "\x9f", "\ue000", "\uffff", "\U0001f600"]
)
async def test_names_have_no_character_that_zookeeper_refuses(service, character):
    one = await service.connect()
    path = f"/a{character}b"
    for attempt in (one.create(path), one.set(path, b""), one.get(path), one.exists(path)):
        with pytest.raises(InvalidValueError, match="ZooKeeper does not allow the character"):
            await attempt
    for name in ("a b", "a%20b", "ü*+~", "\ufdd0"):
        await one.create(f"/{name}")
    assert await one.children("/") == sorted(["a b", "a%20b", "ü*+~", "\ufdd0"])
    await one.close()


async def test_many_nodes_are_read_at_once(service):
    one = await service.connect()
    paths = [f"/many/{number}" for number in range(1203)]
    await one.create("/many")
    await one.multi([Create(path, path.encode()) for path in paths[::2]])
    await one.set(paths[2], b"")
    found = await one.get_many(paths)
    assert len(found) == len(paths)
    assert found[0] == await one.get(paths[0])
    assert found[2][0] == b""
    assert found[2][1].version == 1
    assert [node[0] for node in found[4::2]] == [path.encode() for path in paths[4::2]]
    assert found[1::2] == [None] * 601
    assert await one.get_many([]) == []
    with pytest.raises(InvalidValueError):
        await one.get_many(["/many/1", "many"])
    await one.close()
    with pytest.raises(SessionExpired):
        await one.get_many(paths)


async def test_watches_are_left_on_those_of_many_that_are_there(service):
    one, two = await service.connect(), await service.connect()
    await one.create("/a", b"1")
    heard = []
    found = await one.get_many(["/a", "/b"], heard.append)
    assert [node and node[0] for node in found] == [b"1", None]
    await two.create("/b")
    await two.set("/a", b"2")
    await told(one)
    assert (await one.get_many(["/a", "/b"], heard.append))[0][0] == b"2"
    assert heard == [Event(EventType.CHANGED, "/a")]
    await two.delete("/b")
    await told(one)
    assert heard[1:] == [Event(EventType.DELETED, "/b")]
    for session in (one, two):
        await session.close()


async def test_transactions_side_by_side_each_succeed_or_fail(service):
    one = await service.connect()
    await one.create("/a")
    outcomes = await one.multi_each(
        [
            [Create("/b"), Create("/b/c")],
            [Set("/a", b"", 7), Create("/never")],
            [Set("/a", b"x", 0), Delete("/missing")],
            [Set("/a", b"y", 0)],
        ]
    )
    assert outcomes[0] == ["/b", "/b/c"]
    assert isinstance(outcomes[1], BadVersion)
    assert isinstance(outcomes[2], NoNode)
    assert outcomes[2].path == "/missing"
    assert outcomes[3][0].version == 1
    assert await one.exists("/never") is None
    assert await one.multi_each([]) == []
    await service.expire(one)
    with pytest.raises(SessionExpired):
        await one.multi_each([[Create("/d")]])
    await one.close()


async def test_each_request_that_is_answered_is_measured(service):
    one = await service.connect()
    await one.create("/before")
    seconds = []
    one.measure(seconds.append)
    await one.create("/a")
    await one.get("/a")
    with pytest.raises(NoNode):
        await one.get("/missing")
    assert len(seconds) == 3
    assert all(0 <= each < 60 for each in seconds)
    await one.close()

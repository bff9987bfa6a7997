"""A ZooKeeper session under faults: restarts, pauses, cut networks, lost answers, dead leaders."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.network.wire_cutter import WireCutter

from barnabas.coordination.contract import (
    Check,
    CoordinationError,
    Create,
    Delete,
    Event,
    EventType,
    NodeExists,
    NoPermission,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
    Set,
)
from barnabas.model.errors import ConfigError
from barnabas.testing.zookeeper import ZooKeeperEnsemble, ZooKeeperServer, free_port

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from barnabas.coordination.zookeeper import link as zookeeper_link
from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
from barnabas.coordination.zookeeper.settings import ZooKeeperSettings

TIMEOUT_MS = 40_000
"""On a machine that has other things to do nobody's session may end by chance."""

SHORT_MS = 4000
"""Where a session is to end, or a silent server to be noticed."""

PATIENCE_S = 120


def settings(*servers: str, chroot: str = "", **more: object) -> ZooKeeperSettings:
    values = {"session_timeout_ms": TIMEOUT_MS, "connection_timeout_ms": 60_000, **more}
    return ZooKeeperSettings(servers, chroot, **values)


async def connect(*servers: str, **more: object) -> ZooKeeperCoordination:
    session = ZooKeeperCoordination(settings(*servers, **more))
    await session.start()
    return session


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that only the clock brings about."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Reached:
    """Waits until a session has been in a state."""

    def __init__(self, session: ZooKeeperCoordination) -> None:
        self.states: list[SessionState] = []
        self._changed = asyncio.Event()
        session.add_session_listener(self._hear)

    def _hear(self, state: SessionState) -> None:
        self.states.append(state)
        self._changed.set()

    async def state(self, wanted: SessionState) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while wanted not in self.states:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def server(zookeeper_classpath: str) -> Iterator[ZooKeeperServer]:
    """A server of the test's own, to break."""
    with ZooKeeperServer(zookeeper_classpath) as running:
        yield running


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[WireCutter]:
    """A network of the test's own, to break, before the server that all share."""
    with WireCutter(zookeeper.port) as running:
        yield running


@pytest.fixture
def chroot(chroots: Iterator[str]) -> str:
    return next(chroots)


async def test_the_chroot_is_made_and_nothing_shows_beyond_it(zookeeper, chroot):
    deep = f"{chroot}/deep/er"
    one = await connect(zookeeper.address, chroot=deep)
    events: list[Event] = []
    await one.children("/", events.append)
    assert await one.create("/a/n", b"x", make_parents=True, sequence=True) == "/a/n0000000000"
    above = await connect(zookeeper.address)
    assert (await above.get(f"{deep}/a/n0000000000"))[0] == b"x"
    assert await one.multi([Create("/b", b""), Check("/a")]) == ["/b", None]
    assert events == [Event(EventType.CHILDREN, "/")]
    await one.close()
    await above.close()


async def test_no_server_in_time_is_an_error_that_names_the_option():
    session = ZooKeeperCoordination(
        settings(f"127.0.0.1:{free_port()}", chroot="/x", connection_timeout_ms=200)
    )
    with pytest.raises(ServiceUnavailable, match=r"200 ms \(zookeeper.connection.timeout.ms\)"):
        await session.start()
    assert session.state is SessionState.CLOSED
    with pytest.raises(SessionExpired):
        await session.exists("/")
    await session.close()


async def test_a_restarted_server_finds_the_session_and_its_watches(server):
    one = await connect(server.address)
    reached = Reached(one)
    events: list[Event] = []
    await one.create("/live", b"me", ephemeral=True)
    await one.create("/plain", b"1")
    await one.create("/parent")
    for path in ("/live", "/plain", "/absent", "/gone"):
        await one.exists(path, events.append)
    await one.children("/parent", events.append)
    session_id = one.session_id
    await asyncio.to_thread(server.kill)
    waiting = asyncio.ensure_future(one.get("/plain"))
    await reached.state(SessionState.SUSPENDED)
    assert one.state is SessionState.SUSPENDED
    assert not waiting.done(), "a call waits while contact is lost"
    await asyncio.to_thread(server.start)
    assert (await waiting)[0] == b"1"
    assert one.state is SessionState.CONNECTED
    assert one.session_id == session_id
    assert (await one.exists("/live")).ephemeral_owner == session_id
    assert events == [], "nothing changed, so no watch fires"
    two = await connect(server.address)
    await two.set("/plain", b"2")
    await two.create("/parent/child")
    await two.create("/absent")
    await one.exists("/")
    assert events == [
        Event(EventType.CHANGED, "/plain"),
        Event(EventType.CHILDREN, "/parent"),
        Event(EventType.CREATED, "/absent"),
    ]
    await one.close()
    await two.close()


async def test_changes_made_while_cut_off_fire_the_watches(zookeeper, proxy, chroot):
    one = await connect(proxy.address, chroot=chroot)
    two = await connect(zookeeper.address, chroot=chroot)
    for path in ("/set", "/deleted", "/again", "/parent", "/kept"):
        await two.create(path)
    events: list[Event] = []
    for path in ("/set", "/deleted", "/again", "/created", "/kept"):
        await one.exists(path, events.append)
    for path in ("/parent", "/again"):
        await one.children(path, events.append)
    reached = Reached(one)
    proxy.cut()
    await two.set("/set", b"x")
    await two.delete("/deleted")
    await two.delete("/again")
    await two.create("/again")
    await two.create("/created")
    await two.create("/parent/child")
    proxy.restore()
    await reached.state(SessionState.SUSPENDED)
    assert (await one.get("/set"))[0] == b"x"
    assert sorted(events, key=lambda event: event.path) == [
        Event(EventType.DELETED, "/again"),
        Event(EventType.CREATED, "/created"),
        Event(EventType.DELETED, "/deleted"),
        Event(EventType.CHILDREN, "/parent"),
        Event(EventType.CHANGED, "/set"),
    ]
    assert SessionState.EXPIRED not in reached.states
    await one.close()
    await two.close()


async def test_cut_off_for_too_long_the_session_expires(zookeeper, proxy, chroot):
    one = await connect(proxy.address, chroot=chroot, session_timeout_ms=SHORT_MS)
    two = await connect(zookeeper.address, chroot=chroot)
    gone = asyncio.Event()
    await one.create("/live", ephemeral=True)
    await two.exists("/live", lambda _: gone.set())
    reached = Reached(one)
    proxy.cut()
    await reached.state(SessionState.SUSPENDED)
    waiting = asyncio.ensure_future(one.create("/late"))
    async with asyncio.timeout(PATIENCE_S):
        await gone.wait()
    assert one.state is SessionState.SUSPENDED, "who is cut off cannot know"
    proxy.restore()
    with pytest.raises(SessionExpired):
        await waiting
    await reached.state(SessionState.EXPIRED)
    await one.start()
    await one.create("/live", ephemeral=True)
    assert (await two.exists("/live")).ephemeral_owner == one.session_id
    assert await two.exists("/late") is None
    await one.close()
    await two.close()


async def test_a_paused_server_suspends_and_then_serves_on(server):
    one = await connect(server.address, session_timeout_ms=SHORT_MS)
    reached = Reached(one)
    await one.create("/live", ephemeral=True)
    server.pause()
    await reached.state(SessionState.SUSPENDED)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await one.exists("/live")
    # Past the timeout a server that wakes up may or may not drop the session first.
    server.resume()
    try:
        stat = await one.exists("/live")
    except SessionExpired:
        await one.start()
        await one.create("/live", ephemeral=True)
        stat = await one.exists("/live")
    assert stat.ephemeral_owner == one.session_id
    await one.close()


async def test_a_server_that_says_nothing_is_tried_again(monkeypatch):
    """One connection does not get the whole session: its server may be just starting."""
    monkeypatch.setattr(zookeeper_link, "_PATIENCE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        session = ZooKeeperCoordination(settings(address, session_timeout_ms=60_000))
        starting = asyncio.ensure_future(session.start())
        for _ in range(2):
            connection, _ = await asyncio.to_thread(silent.accept)
            connection.settimeout(30)
            while await asyncio.to_thread(connection.recv, 1024):
                pass  # what it is asked, until it is given up
            connection.close()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


async def test_a_session_closes_although_the_server_is_silent(server):
    one = await connect(server.address, session_timeout_ms=SHORT_MS)
    await one.create("/live", ephemeral=True)
    server.pause()
    waiting = asyncio.ensure_future(one.get("/live"))
    async with asyncio.timeout(PATIENCE_S):
        await one.close()
    with pytest.raises(SessionExpired):
        await waiting
    server.resume()
    two = await connect(server.address)
    gone = asyncio.Event()
    if await two.exists("/live", lambda _: gone.set()) is not None:
        async with asyncio.timeout(PATIENCE_S):
            await gone.wait()
    assert await two.exists("/live") is None
    await two.close()


async def lose_answer(session, proxy, write):
    """Have `write` done by the server and its answer lost; return what it returns."""
    proxy.swallow_answers()
    task = asyncio.ensure_future(write())
    await asyncio.to_thread(proxy.wait_swallowed)
    proxy.restore()
    return await task


async def test_a_write_whose_answer_was_lost_is_known_to_be_done(zookeeper, proxy, chroot):
    one = await connect(proxy.address, chroot=chroot)
    two = await connect(zookeeper.address, chroot=chroot)

    assert (
        await lose_answer(one, proxy, lambda: one.create("/live", b"me", ephemeral=True)) == "/live"
    )
    assert (await two.exists("/live")).ephemeral_owner == one.session_id

    stat = await lose_answer(one, proxy, lambda: one.set("/live", b"still me", 0))
    assert stat == await two.exists("/live")
    assert stat.version == 1

    await two.create("/q")
    made = await lose_answer(one, proxy, lambda: one.create("/q/n", b"x", sequence=True))
    assert await two.children("/q") == [made.removeprefix("/q/")]

    await two.create("/epoch", b"1")
    results = await lose_answer(
        one,
        proxy,
        lambda: one.multi(
            [Create("/controller", b"me", ephemeral=True), Set("/epoch", b"2", 0), Check("/q")]
        ),
    )
    assert results == ["/controller", await two.exists("/epoch"), None]
    assert (await two.get("/epoch"))[1].version == 1

    await lose_answer(one, proxy, lambda: one.delete("/controller"))
    assert await two.exists("/controller") is None
    await lose_answer(one, proxy, lambda: one.multi([Delete("/epoch")]))
    assert await two.exists("/epoch") is None
    await one.close()
    await two.close()


async def test_through_many_lost_answers_every_write_is_done_once(zookeeper, proxy, chroot):
    one = await connect(proxy.address, chroot=chroot)
    two = await connect(zookeeper.address, chroot=chroot)
    for path in ("/counter", "/queue", "/both"):
        await two.create(path)
    writes = 30

    async def count_up() -> None:
        for number in range(writes):
            await one.set("/counter", b"%d" % number, number)

    async def queue_up() -> None:
        for number in range(writes):
            await one.create("/queue/n", b"%d" % number, sequence=True)

    async def do_both() -> None:
        for number in range(writes):
            await one.multi([Create(f"/both/{number}"), Set("/both", b"%d" % number, number)])

    async def come_and_go() -> None:
        for number in range(writes):
            await one.create("/live", b"%d" % number, ephemeral=True)
            await one.delete("/live")

    async def lose_answers() -> None:
        while not writing.done():
            proxy.swallow_answers()
            await asyncio.to_thread(proxy.wait_swallowed)
            proxy.restore()
            await one.exists("/")

    heard = 0

    def hear(_: Event) -> None:
        nonlocal heard
        heard += 1

    async def watch() -> None:
        """Hold that no read shows a change before the watch told of it."""
        while not writing.done():
            before = heard
            _, seen = await one.get("/counter", hear)
            _, now = await one.get("/counter")
            assert now.version == seen.version or heard > before

    writing = asyncio.gather(count_up(), queue_up(), do_both(), come_and_go())
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(writing, lose_answers(), watch())
    assert (await two.exists("/counter")).version == writes
    assert len(await two.children("/queue")) == writes
    assert ((await two.exists("/both")).version, len(await two.children("/both"))) == (30, 30)
    assert await two.exists("/live") is None
    assert heard > 0
    await one.close()
    await two.close()


async def test_the_node_of_another_is_not_taken_for_ours(zookeeper, proxy, chroot):
    one = await connect(proxy.address, chroot=chroot)
    two = await connect(zookeeper.address, chroot=chroot)
    await two.create("/theirs", b"me", ephemeral=True)
    with pytest.raises(NodeExists):
        await lose_answer(one, proxy, lambda: one.create("/theirs", b"me", ephemeral=True))
    await one.create("/older", b"me", ephemeral=True)
    with pytest.raises(NodeExists):
        await lose_answer(one, proxy, lambda: one.create("/older", b"me", ephemeral=True))
    await one.close()
    await two.close()


async def test_contact_is_counted_from_a_request_that_was_answered(zookeeper, proxy, chroot):
    session = await connect(proxy.address, chroot=chroot, session_timeout_ms=SHORT_MS)
    first = session.contact
    assert first is not None
    assert first.timeout_ms == SHORT_MS
    assert first.heard_ago_ms <= first.asked_ago_ms
    # A heartbeat is answered, though nobody asks anything.
    await until(lambda: session.contact.asked_ago_ms < first.asked_ago_ms)
    proxy.cut()
    await until(lambda: session.contact.heard_ago_ms > SHORT_MS / 2)
    assert session.contact.asked_ago_ms >= session.contact.heard_ago_ms
    proxy.restore()
    await until(lambda: session.contact is None or session.contact.asked_ago_ms < SHORT_MS / 4)
    await session.close()
    assert session.contact is None


async def test_contact_knows_the_timeout_that_was_granted(zookeeper, chroot):
    """A server grants at least two ticks."""
    session = await connect(zookeeper.address, chroot=chroot, session_timeout_ms=100)
    await until(lambda: session.contact.timeout_ms != 100)
    assert session.contact.timeout_ms == 400
    await session.close()


async def test_an_ensemble_survives_the_death_of_its_leader(zookeeper_classpath):
    with ZooKeeperEnsemble(zookeeper_classpath) as ensemble:
        one = await connect(*ensemble.addresses)
        two = await connect(*ensemble.addresses)
        await one.create("/counter", b"0")
        await one.create("/live", ephemeral=True)
        changed: list[Event] = []
        async with asyncio.timeout(PATIENCE_S):
            # Its server may be behind.
            while await two.exists("/counter") is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await two.get("/counter", changed.append)
        numbers = count(1)
        written = 0

        async def write() -> None:
            nonlocal written
            for number in numbers:
                await one.set("/counter", b"%d" % number, number - 1)
                written = number
                if dead and number >= alive_at + 5:
                    return

        dead, alive_at = False, sys.maxsize
        writer = asyncio.ensure_future(write())
        leader = await asyncio.to_thread(ensemble.leader)
        await asyncio.to_thread(leader.kill)
        dead, alive_at = True, written
        async with asyncio.timeout(PATIENCE_S):
            await writer
        await two.get("/counter")
        assert changed == [Event(EventType.CHANGED, "/counter")]
        data, stat = await one.get("/counter")
        assert (int(data), stat.version) == (written, written), "each write was done once"
        assert (await one.exists("/live")).ephemeral_owner == one.session_id
        await one.close()
        await two.close()


async def test_acls_keep_strangers_from_writing_and_from_secrets(zookeeper, chroot):
    owner = await connect(
        zookeeper.address, chroot=chroot, set_acl=True, credentials="broker:secret"
    )
    await owner.create("/brokers/ids", make_parents=True)
    await owner.create("/config/users/u", b"hash", make_parents=True)
    await owner.create("/consumers/g", make_parents=True)
    stranger = await connect(zookeeper.address, chroot=chroot)
    assert await stranger.children("/brokers/ids") == []
    with pytest.raises(NoPermission, match="/brokers/ids/1"):
        await stranger.create("/brokers/ids/1")
    with pytest.raises(NoPermission):
        await stranger.get("/config/users/u")
    await stranger.create("/consumers/g/ids")
    friend = await connect(zookeeper.address, chroot=chroot, credentials="broker:secret")
    assert (await friend.get("/config/users/u"))[0] == b"hash"
    for session in (owner, stranger, friend):
        await session.close()


async def test_calls_are_pipelined_up_to_the_bound(zookeeper, chroot):
    one = await connect(zookeeper.address, chroot=chroot, in_flight_max=3)
    in_flight, most = 0, 0
    link = one._link
    ask = link.exists

    def counted(path, watched, answered):
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)

        def done(value, failure):
            nonlocal in_flight
            in_flight -= 1
            answered(value, failure)

        ask(path, watched, done)

    link.exists = counted
    await asyncio.gather(*(one.exists(f"/{number}") for number in range(20)))
    assert most == 3
    await one.close()


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "kazoo"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("link", "coordination"):
        monkeypatch.delitem(sys.modules, f"barnabas.coordination.zookeeper.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    with pytest.raises(ConfigError, match=r"pip install 'barnabas\[zookeeper\]'"):
        __import__("barnabas.coordination.zookeeper.coordination")


async def test_a_server_that_is_too_old_is_asked_node_by_node(zookeeper, chroot):
    """Before 3.6 there is no request for many nodes: the first answer says so, once."""
    from kazoo.exceptions import UnimplementedError

    one = await connect(zookeeper.address, chroot=chroot)
    await one.create("/a", b"1")
    asked = []

    def unknown(paths, answered):
        asked.append(list(paths))
        answered(None, UnimplementedError())

    one._link.get_many = unknown
    for _ in range(2):
        found = await one.get_many(["/a", "/b"])
        assert [node and node[0] for node in found] == [b"1", None]
    assert asked == [["/a", "/b"]]
    await one.close()


async def test_a_node_among_many_that_may_not_be_read_is_named(zookeeper, chroot):
    owner = await connect(
        zookeeper.address, chroot=chroot, set_acl=True, credentials="broker:secret"
    )
    await owner.create("/open")
    await owner.create("/config/users/u", b"hash", make_parents=True)
    stranger = await connect(zookeeper.address, chroot=chroot)
    with pytest.raises(NoPermission, match="/config/users/u"):
        await stranger.get_many(["/open", "/config/users/u"])
    for session in (owner, stranger):
        await session.close()


async def test_a_request_that_is_too_large_for_the_server_is_not_sent_for_ever(zookeeper_classpath):
    """The server ends the connection: asked for ever, nobody's answers would come through."""
    # What a server takes by default; the last word on its command line counts.
    by_default = ["-Djute.maxbuffer=1048575"]
    with ZooKeeperServer(zookeeper_classpath, java_options=by_default) as server:
        session = await connect(server.address)
        for path in ("/a", "/b"):
            await session.create(path)
        half = b"x" * 600_000
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(CoordinationError, match=r"1,200,004 bytes.*jute\.maxbuffer"):
                await session.multi([Set("/a", half), Set("/b", half)])
            await session.set("/a", half)
        assert (await session.get("/a"))[0] == half
        assert (await session.get("/b"))[0] == b""
        await session.close()

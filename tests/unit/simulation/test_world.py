"""A whole world: hosts that serve, crash, pause and come back, and a seed that replays it all."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordination.contract import NodeExists, SessionExpired
from barnabas.simulation.loop import SimulationDeadlock
from barnabas.simulation.world import START_MS, Host, SimulationFailure, World, current_host


class Journal(asyncio.Protocol):
    """A tiny store: appends each byte to a file, flushes in the executor, then echoes the byte."""

    def __init__(self, host: Host) -> None:
        self.loop = asyncio.get_running_loop()
        self.file = host.disk.open("/journal", create=True)
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.work = self.loop.create_task(self.write())

    def data_received(self, data: bytes) -> None:
        self.waiting.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.work.cancel()

    async def write(self) -> None:
        while True:
            data = await self.waiting.get()
            self.file.pwrite(data, self.file.size())
            await self.loop.run_in_executor(None, self.file.flush)
            self.transport.write(data)


async def serve(host: Host) -> None:
    host.disk.open("/journal", create=True).close()
    host.disk.flush_dir("/")
    await asyncio.get_running_loop().create_server(lambda: Journal(host), host.name, 1)


async def produce(target: str, acknowledged: list[int], count: int) -> None:
    """Send numbers one by one until each is acknowledged, whatever it takes."""
    for number in range(count):
        while number not in acknowledged:
            try:
                async with asyncio.timeout(2):
                    reader, writer = await asyncio.open_connection(target, 1)
                    writer.write(struct.pack(">I", number))
                    if await reader.readexactly(4) == struct.pack(">I", number):
                        acknowledged.append(number)
                    writer.close()
            except (OSError, EOFError, TimeoutError):
                await asyncio.sleep(0.2)


def run_story(seed: int) -> tuple[str, list[int], bytes]:
    """Run a server through crashes, pauses and cuts; return digest, acknowledgements and file."""
    with World(seed, clock_skew_ms_max=500) as world:
        acknowledged: list[int] = []
        world.start("server", serve)
        producing = world.start("client", lambda host: produce("server", acknowledged, 60))

        async def scenario() -> None:
            while not producing.done():
                await asyncio.sleep(world.random.uniform(0.01, 0.1))
                match world.random.choice(["crash", "pause", "cut", "reset"]):
                    case "crash":
                        world.crash("server", silent=world.random.random() < 0.5)
                        await asyncio.sleep(0.05)
                        world.restart("server")
                    case "pause":
                        world.pause("server")
                        await asyncio.sleep(0.5)
                        world.resume("server")
                    case "cut":
                        world.network.cut("client", "server", both=world.random.random() < 0.5)
                        await asyncio.sleep(0.5)
                        world.network.heal_all()
                    case "reset":
                        world.network.reset("client", "server")

        world.run(scenario(), until=600)
        return world.trace.digest(), acknowledged, world.hosts["server"].disk.read("/journal")


@pytest.mark.parametrize("seed", range(6))
def test_what_was_flushed_before_it_was_acknowledged_is_never_lost(seed):
    _, acknowledged, journal = run_story(seed)
    assert acknowledged == list(range(60))
    for number in acknowledged:
        assert struct.pack(">I", number) in journal


def test_one_seed_replays_one_run_and_another_does_not():
    first, second, other = run_story(1), run_story(1), run_story(2)
    assert first == second
    assert first[0] != other[0]


def test_a_run_is_the_same_in_another_interpreter():
    """String hashing differs between interpreters: nothing may depend on the order of a set."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_world\n"
        "print(test_world.run_story(3)[0])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert digests == {run_story(3)[0]}


def test_clocks_and_random_sources_are_the_hosts_own():
    def draw(seed: int) -> dict[str, tuple[int, float]]:
        with World(seed, clock_skew_ms_max=1000) as world:
            hosts = [world.host(name) for name in ("one", "two", "three")]

            async def scenario() -> None:
                await asyncio.sleep(10)

            world.run(scenario())
            assert world.now_ms() == START_MS + 10_000
            for host in hosts:
                assert abs(host.now_ms() - world.now_ms()) <= 1000
            return {host.name: (host.now_ms(), host.random.random()) for host in hosts}

    drawn = draw(1)
    assert drawn == draw(1) != draw(2)
    assert len({now for now, _ in drawn.values()}) == 3
    assert len({value for _, value in drawn.values()}) == 3


def test_code_knows_its_host():
    with World(seed=1) as world:

        async def program(host: Host) -> str:
            await asyncio.sleep(1)
            return current_host()

        tasks = [world.start(name, program) for name in ("one", "two")]

        async def scenario() -> list[str]:
            return [current_host(), *await asyncio.gather(*tasks)]

        assert world.run(scenario()) == ["driver", "one", "two"]


def test_a_killed_host_keeps_its_page_cache_and_a_crashed_one_does_not():
    outcomes: dict[str, set[bytes | None]] = {"kill": set(), "crash": set()}
    for seed in range(40):
        for end in outcomes:
            with World(seed) as world:

                async def write(host: Host) -> None:
                    host.disk.open("/f", create=True).pwrite(b"x", 0)
                    await asyncio.sleep(1000)

                world.start("one", write)
                world.run(asyncio.sleep(1))
                getattr(world, end)("one")
                outcomes[end].add(world.hosts["one"].disk.read("/f"))
    assert outcomes == {"kill": {b"x"}, "crash": {None, b"", b"x"}}


def test_connections_of_a_crashed_host_are_reset_now_or_when_it_is_back():
    for silent in (False, True):
        with World(seed=3) as world:
            world.start("one", serve)

            async def scenario(world=world, silent=silent) -> float:
                reader, writer = await asyncio.open_connection("one", 1)
                await asyncio.sleep(1)
                world.crash("one", silent=silent)
                world.loop.call_later(20, world.restart, "one")
                if not silent:
                    with pytest.raises(ConnectionRefusedError):
                        await asyncio.open_connection("one", 1)
                with pytest.raises(ConnectionResetError):
                    await reader.readexactly(1)
                writer.close()
                return world.loop.time()

            when = world.run(scenario())
            assert (20 < when < 22) if silent else (when < 2)


def test_a_paused_host_accepts_connections_but_answers_later():
    with World(seed=3) as world:
        world.start("one", serve)

        async def scenario() -> None:
            await asyncio.sleep(1)
            world.pause("one")
            reader, writer = await asyncio.open_connection("one", 1)
            writer.write(b"1234")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await reader.readexactly(4)
            world.resume("one")
            assert await reader.readexactly(4) == b"1234"
            writer.close()

        world.run(scenario())


def test_a_host_that_is_paused_or_cut_off_loses_its_session():
    async def lead(host: Any) -> None:
        """Take the lead when it is free; on losing the session, note it and try again."""
        coordination = host.coordination(timeout_ms=6000)
        await coordination.start()
        while True:
            try:
                await coordination.create("/leader", host.name.encode(), ephemeral=True)
                host.led.append(coordination.session_id)
            except NodeExists:
                pass
            except SessionExpired:
                host.expiries += 1
                await coordination.start()
            await asyncio.sleep(1)

    with World(seed=4) as world:
        for name in ("one", "two"):
            host: Any = world.host(name)
            host.led, host.expiries = [], 0
            world.start(name, lead)
        one: Any = world.hosts["one"]
        two: Any = world.hosts["two"]

        async def leader(observer) -> bytes:
            return (await observer.get("/leader"))[0]

        async def scenario() -> None:
            observer = world.host("observer").coordination()
            await observer.start()
            await asyncio.sleep(2)
            first = await leader(observer)
            second = b"two" if first == b"one" else b"one"
            world.pause(first.decode())
            await asyncio.sleep(20)
            assert await leader(observer) == second
            world.resume(first.decode())
            await asyncio.sleep(5)
            hosts: dict[str, Any] = {**world.hosts}
            assert hosts[first.decode()].expiries == 1
            world.network.isolate(second.decode())
            await asyncio.sleep(20)
            assert await leader(observer) == first
            world.network.heal_all()
            await asyncio.sleep(5)
            assert hosts[second.decode()].expiries == 1
            world.crash(first.decode())
            await asyncio.sleep(20)
            assert await leader(observer) == second

        world.run(scenario(), until=200)
        assert len(one.led) + len(two.led) == 4


def test_a_failure_that_nobody_handles_fails_the_run():
    async def fail(host: Host) -> None:
        await asyncio.sleep(1)
        raise ValueError("broken program")

    with World(seed=5) as world:
        task = world.start("one", fail)
        with pytest.raises(SimulationFailure, match="seed 5: one/main failed") as caught:
            world.run(asyncio.sleep(2))
        assert str(caught.value.__cause__) == "broken program"
        assert task.done()
        world.run(asyncio.sleep(2))

    with World(seed=5) as world:
        task = world.start("one", fail)

        async def scenario() -> None:
            with pytest.raises(ValueError, match="broken program"):
                await task

        world.run(scenario())

    with World(seed=5) as world:
        world.loop.call_later(1, lambda: 1 / 0)
        with pytest.raises(SimulationFailure) as caught:
            world.run(asyncio.sleep(2))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_run_has_an_end():
    with World(seed=6) as world:
        with pytest.raises(SimulationFailure, match=r"not done at 30\.000 s"):
            world.run(asyncio.sleep(3600), until=30)
        with pytest.raises(SimulationDeadlock, match="scenario"):
            world.run(asyncio.Event().wait())
        with pytest.raises(ZeroDivisionError):
            world.run(divide_by_zero())


async def divide_by_zero() -> None:
    await asyncio.sleep(1)
    raise ZeroDivisionError

"""What a service manager is notified of, by a socket that stands for it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.service_manager import ServiceManager

Listening = tuple[str, socket.socket]
"""The address in NOTIFY_SOCKET, and the socket behind it."""


@pytest.fixture(params=["file", "abstract"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listening]:
    name = secrets.token_hex(8)
    shown = f"@{name}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(f"\0{name}" if request.param == "abstract" else shown)
        server.settimeout(10)
        yield shown, server


def lines(server: socket.socket) -> dict[str, str]:
    """Return the next state."""
    text = server.recv(4096).decode()
    return dict(line.split("=", 1) for line in text.splitlines())


def test_each_state_is_a_datagram(listening: Listening) -> None:
    address, server = listening
    manager = ServiceManager.of_environment({"NOTIFY_SOCKET": address}, 1)
    assert manager.is_there
    manager.ready("ready on PLAINTEXT://:9092")
    assert lines(server) == {"READY": "1", "STATUS": "ready on PLAINTEXT://:9092"}
    manager.reloading()
    reloading = lines(server)
    assert reloading["RELOADING"] == "1"
    assert int(reloading["MONOTONIC_USEC"]) > 0
    manager.stopping()
    assert lines(server)["STOPPING"] == "1"


def test_a_watchdog_is_notified_twice_in_its_interval(listening: Listening) -> None:
    address, server = listening
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "7"}
    manager = ServiceManager.of_environment(environment, 7)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        end = manager.keep_alive(loop)
        for _ in range(3):
            assert await asyncio.to_thread(lines, server) == {"WATCHDOG": "1"}
        end()
        return loop.time() - began_s

    assert asyncio.run(run()) >= 0.019


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "1000"},
        {"NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"},
        {"NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "soon"},
    ],
)
def test_no_watchdog_no_beat(environment: dict[str, str]) -> None:
    manager = ServiceManager.of_environment(environment, 7)

    async def run() -> int:
        loop = asyncio.get_running_loop()
        before = len(loop._scheduled)  # type: ignore[attr-defined]
        manager.keep_alive(loop)()
        return len(loop._scheduled) - before  # type: ignore[attr-defined]

    assert asyncio.run(run()) == 0


def test_children_do_not_speak_for_the_service(listening: Listening) -> None:
    environment = {"NOTIFY_SOCKET": listening[0], "WATCHDOG_USEC": "1000", "PATH": "/bin"}
    ServiceManager.of_environment(environment, 7)
    assert environment == {"PATH": "/bin"}


def test_a_manager_that_does_not_listen_is_no_failure() -> None:
    ServiceManager("/no/such/socket").ready("ready")
    assert not ServiceManager(None).is_there
    ServiceManager(None).stopping()

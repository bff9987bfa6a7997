"""The console of a broker that is started by the command: over real sockets, from its address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.unit.broker.serving import Serving

from barnabas.cli.console_part import BrokerConsole, console_address
from barnabas.config.broker import BrokerOptions
from barnabas.model.errors import ConfigError


def options(**given: str) -> BrokerOptions:
    return BrokerOptions.parse(
        {"log.dirs": "data"} | {f"barnabas.console.{name}": value for name, value in given.items()}
    )


def test_there_is_none_unless_it_has_an_address() -> None:
    assert console_address(options()) is None
    address = console_address(options(listener="9000"))
    assert address is not None
    assert str(address) == "127.0.0.1:9000"


def test_others_can_only_connect_if_that_is_wanted() -> None:
    with pytest.raises(ConfigError, match=r"barnabas\.console\.insecure=true"):
        console_address(options(listener="0.0.0.0:8080"))
    assert console_address(options(listener="0.0.0.0:8080", insecure="true")) is not None


def test_a_mode_is_one_of_three() -> None:
    with pytest.raises(ConfigError, match="must be full, read-only or metadata-only"):
        options(mode="write-only")


@pytest.fixture
def readonly(tmp_path: Path) -> Iterator[Serving]:
    """A broker whose console changes nothing."""
    given = {"barnabas.console.listener": "127.0.0.1:0", "barnabas.console.mode": "read-only"}
    with Serving(tmp_path, given) as running:
        yield running


def test_pages_come_from_the_broker(readonly: Serving) -> None:
    for package in ("starlette", "jinja2", "uvicorn", "h11"):
        pytest.importorskip(package)
    broker = readonly.broker
    loop = broker.loop
    address = console_address(broker.options)
    assert address is not None
    console = readonly.inside(lambda: BrokerConsole(broker, address))
    asyncio.run_coroutine_threadsafe(console.start(), loop).result(60)
    try:
        assert not readonly.inside(lambda: console.server.is_loaded)
        with urlopen(console.server.url, timeout=60) as answer:
            page = answer.read().decode()
        assert "Nothing is wrong" in page
        assert "The console is read-only" in page
        with urlopen(f"{console.server.url}topics", timeout=60) as answer:
            assert "Create a topic" not in answer.read().decode()
    finally:
        asyncio.run_coroutine_threadsafe(console.stop(), loop).result(60)
    asyncio.run_coroutine_threadsafe(console.stop(), loop).result(60)

"""Runs several brokers of one cluster in one background thread, on one coordination store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.testing.thread import new_loop

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.coordination.embedded import EmbeddedStore

Result = TypeVar("Result")
_DEADLINE_S = 60.0


class SharedLoop:
    """The thread of a cluster; it runs from the start of the first broker until `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._store: EmbeddedStore | None = None

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for its result."""
        if self._loop is None:
            ready: Future[asyncio.AbstractEventLoop] = Future()
            self._thread = threading.Thread(
                target=self._serve, args=(ready,), name="barnabas-cluster", daemon=True
            )
            self._thread.start()
            self._loop = ready.result(_DEADLINE_S)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_DEADLINE_S)

    def store(self, directory: Path) -> EmbeddedStore:
        """Return the store that all brokers share, kept in a directory."""
        from barnabas.coordination.embedded import EmbeddedStore

        if self._store is None:
            self._store = EmbeddedStore(directory / "coordination.sqlite")
        return self._store

    def close(self) -> None:
        """Stop the thread; its brokers have been stopped or killed."""
        loop, thread, ended = self._loop, self._thread, self._ended
        self._loop = self._thread = self._store = self._ended = None
        if loop is not None and thread is not None and ended is not None:
            loop.call_soon_threadsafe(ended.set)
            thread.join(_DEADLINE_S)

    def _serve(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        # A runner cancels the remaining tasks: otherwise the garbage collector would warn about
        # them in whatever test is running at that time.
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._live(ready))

    async def _live(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        self._ended = ended = asyncio.Event()
        ready.set_result(asyncio.get_running_loop())
        await ended.wait()


class SharedRunner:
    """One broker of a cluster in a shared thread."""

    def __init__(self, home: SharedLoop, directory: Path) -> None:
        self._home = home
        self._directory = directory
        self._broker: Broker | None = None

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start the broker, and wait until it serves."""
        return self._home.run(self._start(options))

    async def _start(self, options: Mapping[str, str]) -> tuple[str, int]:
        from barnabas.broker.broker import Broker
        from barnabas.config.broker import BrokerOptions
        from barnabas.coordination.embedded import EmbeddedCoordination

        parsed = BrokerOptions.parse(dict(options))
        tree = EmbeddedCoordination(self._home.store(self._directory))
        broker = Broker(parsed, coordination=tree)
        await broker.start()
        self._broker = broker
        endpoint = broker.endpoints[0]
        return endpoint.host, endpoint.port

    def stop(self) -> None:
        """Shut the broker down cleanly."""
        assert self._broker is not None
        self._home.run(self._broker.stop())

    def kill(self) -> None:
        """Abandon the broker."""
        assert self._broker is not None
        self._home.run(self._broker.kill())

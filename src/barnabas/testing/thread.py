"""Runs a broker in a background thread with its own event loop.

The thread runs from `start` to `stop` or `kill`. If the broker fails to start or stop, the failure
is raised in the calling thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from barnabas.config.listeners import Endpoint

_DEADLINE_S = 60.0


class InProcessBroker(Protocol):
    """What the runner needs of a broker."""

    async def start(self) -> None: ...
    @property
    def endpoints(self) -> Sequence[Endpoint]: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...


def broker_of(options: Mapping[str, str]) -> InProcessBroker:
    """Return a broker with these options, not yet started."""
    from barnabas.broker.broker import Broker
    from barnabas.config.broker import BrokerOptions

    return Broker(BrokerOptions.parse(dict(options)))


class ThreadRunner:
    """One broker in one thread."""

    def __init__(
        self, make_broker: Callable[[Mapping[str, str]], InProcessBroker] = broker_of
    ) -> None:
        self._make_broker = make_broker
        self._thread: threading.Thread | None = None
        self._end: Callable[[bool], object] | None = None
        self._ended: Future[None] = Future()

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start the thread and wait until the broker is ready in it."""
        ready: Future[tuple[str, int]] = Future()
        self._ended = Future()
        self._thread = threading.Thread(
            target=self._run, args=(options, ready), name="barnabas-broker", daemon=True
        )
        self._thread.start()
        return ready.result(_DEADLINE_S)

    def stop(self) -> None:
        """Shut the broker down cleanly."""
        self._finish(controlled=True)

    def kill(self) -> None:
        """Abandon the broker."""
        self._finish(controlled=False)

    def _finish(self, *, controlled: bool) -> None:
        assert self._thread is not None
        assert self._end is not None
        self._end(controlled)
        self._ended.result(_DEADLINE_S)
        self._thread.join(_DEADLINE_S)

    def _run(self, options: Mapping[str, str], ready: Future[tuple[str, int]]) -> None:
        ended = self._ended
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._serve(options, ready))
        except BaseException as failure:  # noqa: BLE001  raised again in the waiting thread
            (ended if ready.done() else ready).set_exception(failure)
        else:
            ended.set_result(None)

    async def _serve(self, options: Mapping[str, str], ready: Future[tuple[str, int]]) -> None:
        loop = asyncio.get_running_loop()
        wanted: asyncio.Future[bool] = loop.create_future()
        self._end = lambda controlled: loop.call_soon_threadsafe(wanted.set_result, controlled)
        broker = self._make_broker(options)
        await broker.start()
        endpoint = broker.endpoints[0]
        ready.set_result((endpoint.host, endpoint.port))
        if await wanted:
            await broker.stop()
        else:
            await broker.kill()


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()

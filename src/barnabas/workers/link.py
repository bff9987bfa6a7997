"""A worker's end of the channel to its supervisor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from barnabas.workers.channel import Orders, Report, decode_orders, encode_report, inherited


class SupervisorLink:
    """Reports to the supervisor, and notices its end."""

    def __init__(self, descriptor: int) -> None:
        """Read the orders, which the supervisor sends at once; raise ConfigError without any."""
        self._socket = inherited(descriptor)
        with self._socket.makefile("rb") as lines:
            self.orders: Orders = decode_orders(lines.readline())
        self._socket.setblocking(False)

    def watch(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], object]) -> None:
        """Call `on_end` once when the supervisor has ended."""

        def readable() -> None:
            try:
                if self._socket.recv(1024):
                    return
            except BlockingIOError:
                return
            except OSError:
                pass  # it ended, and something that we sent was not read
            loop.remove_reader(self._socket)
            on_end()

        loop.add_reader(self._socket, readable)

    def report(self, report: Report) -> None:
        """Send a report."""
        with contextlib.suppress(OSError):  # it has ended, which `watch` notices
            self._socket.sendall(encode_report(report))

"""One worker's process, as its supervisor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

from barnabas.workers.channel import Orders, Report, decode_report, encode_orders
from barnabas.workers.log_lines import LineCopier

logger = logging.getLogger("barnabas.workers")

LINES_S_MAX = 5.0
"""How long to wait for the last lines of a process that has ended."""


class Child:
    """A process that runs one broker."""

    def __init__(
        self,
        orders: Orders,
        log_level: str,
        copier: LineCopier,
        on_report: Callable[[Report], object],
    ) -> None:
        """Prepare; `copier` takes what the process writes to standard error."""
        self._orders = orders
        self._log_level = log_level
        self._copier = copier
        self._on_report = on_report
        self._process: asyncio.subprocess.Process | None = None
        self._signalled: signal.Signals | None = None

    async def run(self) -> int:
        """Start the process, and return its exit code when it has ended."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = await self._start(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            self._copier.start()
        if self._signalled is not None:
            self._signal(self._signalled)
        logger.info("worker %d: started, pid=%d", self._orders.number, self._process.pid)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        reports = asyncio.ensure_future(self._read(reader))
        try:
            writer.write(encode_orders(self._orders))
            return await self._process.wait()
        finally:
            # What it has reported before its end is still read.
            with contextlib.suppress(OSError):
                await reports
            writer.close()
            await asyncio.to_thread(self._copier.join, LINES_S_MAX)

    async def _start(self, channel: socket.socket) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "barnabas.cli",
            "start",
            "--worker",
            str(channel.fileno()),
            "--log-level",
            self._log_level,
            stdin=subprocess.DEVNULL,
            stderr=self._copier.descriptor,
            pass_fds=(channel.fileno(),),
            process_group=0,  # Ctrl-C in a terminal is for the supervisor alone
        )

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            try:
                self._on_report(decode_report(line))
            except ValueError as failure:
                logger.error("worker %d: unreadable report: %s", self._orders.number, failure)

    def terminate(self) -> None:
        """Ask for a controlled shutdown."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            self._signalled = number  # as soon as it is there
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

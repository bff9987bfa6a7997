"""What a service notifies its manager of, by the protocol of `sd_notify`: a datagram per state.

    manager = ServiceManager.of_environment(os.environ, os.getpid())
    manager.ready("ready on PLAINTEXT://:9092")
    stop = manager.keep_alive(loop)            # WATCHDOG=1, as long as the loop runs
    manager.stopping()

Without a manager (no NOTIFY_SOCKET) nothing happens.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, MutableMapping

_WAIT_S = 1.0


class ServiceManager:
    """The manager that has started this process, or none."""

    @classmethod
    def of_environment(cls, environment: MutableMapping[str, str], pid: int) -> ServiceManager:
        """Return the manager that the environment names; child processes are not told of it."""
        address = environment.pop("NOTIFY_SOCKET", "")
        interval_us = environment.pop("WATCHDOG_USEC", "")
        of_this_process = environment.pop("WATCHDOG_PID", str(pid)) == str(pid)
        watched = of_this_process and interval_us.isdecimal() and int(interval_us) > 0
        return cls(address or None, int(interval_us) / 1_000_000 if watched else None)

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        """`watchdog_s` is how long the manager waits for a sign of life before it restarts us."""
        self._address = address
        self._watchdog_s = watchdog_s if address is not None else None

    @property
    def is_there(self) -> bool:
        """Return whether there is a manager."""
        return self._address is not None

    def ready(self, status: str) -> None:
        """Notify it that the service is ready, also after reloading."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Notify it that options are being read again; `ready` is to follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Notify it that a controlled shutdown has begun."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def keep_alive(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Notify a watchdog from the loop, so that a loop that hangs is noticed; return the end."""
        interval_s = self._watchdog_s
        if interval_s is None:
            return lambda: None
        handle: list[asyncio.TimerHandle] = []

        def beat() -> None:
            self._send("WATCHDOG=1", wait_s=0.0)
            handle[:] = [loop.call_later(interval_s / 2, beat)]

        beat()
        return lambda: handle[0].cancel()

    def _send(self, state: str, *, wait_s: float = _WAIT_S) -> None:
        if self._address is None:
            return
        name = self._address
        if name.startswith("@"):  # an abstract name, as Linux has them
            name = f"\0{name[1:]}"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(wait_s)
                sender.connect(name)
                sender.send(state.encode())
        except OSError:
            pass  # a manager that does not listen must not stop the broker

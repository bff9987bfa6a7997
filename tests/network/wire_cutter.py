"""A TCP proxy whose network a test can break: cut in both directions, or for answers alone.

    with WireCutter(server.port) as proxy:
        client = connect(proxy.port)
        proxy.cut()         # nothing passes, nobody is told: what is sent waits, or is lost
        proxy.restore()     # open connections end, as they do after a long cut; new ones pass

One thread moves the bytes. `swallow_answers` lets requests through and throws answers away, which
is how a write happens whose answer is lost.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from types import TracebackType

_CHUNK = 65536


class WireCutter:
    """Forwards connections to one port of this machine."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._servers: set[socket.socket] = set()
        self._mode = "pass"
        self._ended = False
        self._lock = threading.Lock()
        self._swallowed = threading.Event()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="barnabas-proxy", daemon=True)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Let nothing pass any more, in either direction."""
        self._change("cut")

    def swallow_answers(self) -> None:
        """Let requests pass, and no answer."""
        self._swallowed.clear()
        self._change("swallow")

    def wait_swallowed(self, timeout_s: float = 120) -> None:
        """Wait until an answer has been thrown away."""
        if not self._swallowed.wait(timeout_s):
            raise TimeoutError(f"no answer came within {timeout_s} s")

    def restore(self) -> None:
        """Let everything pass again, over new connections."""
        self._change("restore")

    def _change(self, mode: str) -> None:
        with self._lock:
            self._mode = mode
        self._wake.send(b"\0")

    def __enter__(self) -> WireCutter:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended = True
        self._wake.send(b"\0")
        self._thread.join(10)
        for each in (self._wake, self._woken, self._listener):
            each.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(_CHUNK)
                    self._apply_mode()
                elif key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._peers:
                    self._forward(key.fileobj)
        self._drop_all()

    def _apply_mode(self) -> None:
        with self._lock:
            mode = self._mode
            if mode == "restore":
                self._mode = "pass"
        if mode == "cut":
            # Unread bytes wait in the kernel, as they would on a cut wire.
            for each in list(self._peers):
                with contextlib.suppress(KeyError):
                    self._selector.unregister(each)
        elif mode == "restore":
            self._drop_all()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._mode == "cut":
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target_port))
        except OSError:
            client.close()
            return
        self._peers[client], self._peers[server] = server, client
        self._servers.add(server)
        for each in (client, server):
            self._selector.register(each, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        target = self._peers[source]
        try:
            data = source.recv(_CHUNK)
            # Until it is dropped, too: a connection may end early, but it never leaves a gap.
            if data and self._mode != "pass" and source in self._servers:
                self._swallowed.set()
                return
            if data:
                target.sendall(data)
                return
        except OSError:
            data = b""
        self._drop(source, target)

    def _drop(self, *both: socket.socket) -> None:
        for each in both:
            self._peers.pop(each, None)
            self._servers.discard(each)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each)
            each.close()

    def _drop_all(self) -> None:
        while self._peers:
            source, target = next(iter(self._peers.items()))
            self._drop(source, target)

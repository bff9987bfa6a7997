"""A real ZooKeeper server, or an ensemble of them, for tests: started, paused, killed, stopped.

    with ZooKeeperServer(classpath) as server:
        tree = ZooKeeperCoordination(ZooKeeperSettings((server.address,)))

The server is Apache ZooKeeper, from any directory that has its jars (Debian's package `zookeeper`
puts them in /usr/share/java; distributions of Apache Kafka before 4 have them, too). It is ready in
a fraction of a second; data and output are in a directory that is deleted with it. A server that
was killed or stopped can be started again on the same port, with its data.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from barnabas.model.errors import BarnabasError

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
DEBIAN_CLASSPATH = "/usr/share/java/*:/etc/zookeeper/conf"

# A server in a test runs for seconds: the optimising compiler would only cost startup time.
_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Xmx128m",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # A node may have one MiB; the default leaves no room for the rest of the message.
    "-Djute.maxbuffer=4194304",
    # No test checks what survives a power failure.
    "-Dzookeeper.forceSync=no",
)
_DEADLINE_S = 60.0
_FIRST_PORT, _PORTS = 20_000, 12_000
_offsets = itertools.count(random.SystemRandom().randrange(_PORTS))


class ZooKeeperFailed(BarnabasError):
    """The server exited, or timed out, before it was ready."""


def find_classpath(jars: Path | None = None) -> str | None:
    """Return a class path with the server: `jars`, or Debian's; None if it or Java is missing."""
    if shutil.which("java") is None:
        return None
    if jars is not None and any(jars.glob("zookeeper-*.jar")):
        return f"{jars}/*"
    return DEBIAN_CLASSPATH if Path("/usr/share/java/zookeeper.jar").exists() else None


class ZooKeeperServer:
    """One server in a process of its own."""

    def __init__(
        self,
        classpath: str,
        *,
        tick_ms: int = 200,
        settings: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
        host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
    ) -> None:
        """Describe a server; sessions may last from two ticks up to a minute.

        It listens on `host`; `prefix` comes before its command, to run it in a namespace.
        """
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-zookeeper-"))
        self._classpath = classpath
        self._java_options = java_options
        self._host = host
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {
            "tickTime": str(tick_ms),
            "dataDir": str(self.directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": host,
            "maxClientCnxns": "0",
            "maxSessionTimeout": "60000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            **(settings or {}),
        }

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"{self._host}:{self.port}"

    @property
    def running(self) -> bool:
        """Return whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Add settings, before a start."""
        self._settings.update(settings)

    def start(self, *, wait: bool = True) -> ZooKeeperServer:
        """Start the process and return when it serves; immediately without `wait`."""
        assert not self.running
        file = self.directory / "zoo.cfg"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        command = [
            *self._prefix,
            "java",
            *_JAVA_OPTIONS,
            *self._java_options,
            "-cp",
            self._classpath,
            MAIN,
        ]
        with (self.directory / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [*command, str(file)], cwd=self.directory, stdout=output, stderr=output
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Wait until the server serves; in an ensemble, until it has a leader."""
        deadline = time.monotonic() + _DEADLINE_S
        while self.mode() is None:
            if not self.running or time.monotonic() > deadline:
                said = (self.directory / "output").read_text(errors="replace")[-2000:]
                self.kill()
                raise ZooKeeperFailed(f"ZooKeeper on {self.address} is not ready: {said}")
            time.sleep(0.01)

    def mode(self) -> str | None:
        """Return `standalone`, `leader` or `follower`; None while the server does not serve."""
        for line in self._command(b"srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def _command(self, word: bytes) -> str:
        """Send a four-letter command; the response is empty if the server is not reachable."""
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection((self._host, self.port), 1) as connection,
        ):
            connection.sendall(word)
            while chunk := connection.recv(4096):
                answer += chunk
        return answer.decode(errors="replace")

    def pause(self) -> None:
        """Freeze the process, like a long garbage collection."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused process."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop the process cleanly; its data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process; its data stays."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def close(self) -> None:
        """Kill the process and remove its data."""
        self.kill()
        shutil.rmtree(self.directory)

    def __enter__(self) -> ZooKeeperServer:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class ZooKeeperEnsemble:
    """Servers that elect a leader among themselves."""

    def __init__(self, classpath: str, size: int = 3, *, tick_ms: int = 200) -> None:
        self.servers = [ZooKeeperServer(classpath, tick_ms=tick_ms) for _ in range(size)]
        ports = [(free_port(), free_port()) for _ in self.servers]
        members = {
            f"server.{number}": f"127.0.0.1:{quorum}:{election}"
            for number, (quorum, election) in enumerate(ports, 1)
        }
        for number, server in enumerate(self.servers, 1):
            server.configure({"initLimit": "50", "syncLimit": "25", **members})
            data = server.directory / "data"
            data.mkdir()
            (data / "myid").write_text(f"{number}\n")

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients connect."""
        return tuple(server.address for server in self.servers)

    def leader(self) -> ZooKeeperServer:
        """Return the server that leads now."""
        return next(server for server in self.servers if server.mode() == "leader")

    def __enter__(self) -> ZooKeeperEnsemble:
        try:
            for server in self.servers:
                server.start(wait=False)
            for server in self.servers:
                server.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all servers and remove their data."""
        for server in self.servers:
            server.close()


def free_port(run: int = 1) -> int:
    """Return a TCP port of the loopback interface that is free now, and likely to stay free.

    It is below the system's range for outgoing connections: otherwise, one of these could take it
    before the caller has bound it. A process goes through the ports one by one from a random one:
    it returns none twice, also one that a stopped server will need again. With `run` it is the
    first of as many consecutive ones.
    """
    while True:
        ports = [_FIRST_PORT + next(_offsets) % _PORTS for _ in range(run)]
        if ports[-1] - ports[0] != run - 1:
            continue  # at the end of the range, or another thread took one
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for port in ports:
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return ports[0]

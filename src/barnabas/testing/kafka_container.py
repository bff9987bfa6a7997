"""`KafkaContainer`: testcontainers' interface, on a broker in this process instead of a container.

    from barnabas.testing import KafkaContainer   # was: from testcontainers.kafka import …

    with KafkaContainer() as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())

Every method of testcontainers' class is here. What describes the broker counts: its environment
(`KAFKA_NUM_PARTITIONS` is num.partitions, as in Confluent's images) and the port. What describes
only how a container is run (its image, name, command, other arguments) is accepted to no effect.
What a broker on this machine cannot give, such as a network of containers, raises an error that
says what to use instead.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
import uuid
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from barnabas.model.errors import InvalidValueError
from barnabas.testing.cluster import Cluster

_OF_THE_CONTAINER = re.compile(
    # Where the container's own broker listens, finds its controller and keeps its files.
    "KAFKA_("
    "(ADVERTISED_)?LISTENERS|LISTENER_SECURITY_PROTOCOL_MAP|INTER_BROKER_LISTENER_NAME"
    "|(ADVERTISED_HOST_NAME|ADVERTISED_PORT|ZOOKEEPER_CONNECT|NODE_ID|PROCESS_ROLES|CONTROLLER_.*)"
    "|LOG_DIRS?|(HEAP|JVM_PERFORMANCE|GC_LOG|LOG4J|JMX)_?OPTS|LOG4J_.*|TOOLS_LOG4J_.*|JMX_.*|OPTS"
    ")"
)
_LOCAL = re.compile(r"\b(localhost|127\.0\.0\.1|0\.0\.0\.0):(\d+)\b")
_BROKER_PORT = 9092  # of the listener that is for commands inside of the container
_EXEC_TIMEOUT_S = 120
_LOG_LINES_MAX = 10_000


class ExecResult(NamedTuple):
    """How a command ended."""

    exit_code: int
    output: bytes


class KafkaContainer:
    """A broker that is started and stopped as a container would be."""

    def __init__(
        self,
        image: str = "confluentinc/cp-kafka:7.6.0",
        port: int = 9093,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        *,
        env: dict[str, str] | None = None,
        ports: list[int] | None = None,
        name: str | None = None,
        network: object = None,
        network_aliases: list[str] | None = None,
        volumes: list[tuple[str, str, str]] | None = None,
        transferables: list[Any] | None = None,
        **_of_a_container: Any,
    ) -> None:
        """Describe a broker; nothing starts yet.

        `port` is how `get_exposed_port` calls the broker's port, which the system chooses unless
        `with_bind_ports` does. A security protocol is the work of `Cluster(security=…)`.
        """
        if security_protocol != "PLAINTEXT":
            raise InvalidValueError(
                f"security_protocol={security_protocol!r}: must be PLAINTEXT; a broker with users"
                f' is Cluster(security="{security_protocol.lower()}")'
            )
        self.image = image
        self.port = port
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.kraft_enabled = False
        self.cluster_id = ""
        self.env = {
            "KAFKA_BROKER_ID": "1",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
            **(env or {}),
        }
        self.ports: dict[str, int | None] = {str(port): None}
        self._name = name
        self._id = ""
        self._cluster: Cluster | None = None
        self._log = _LogLines()
        if ports:
            self.with_exposed_ports(*ports)
        if network is not None:
            self.with_network(network)
        if network_aliases:
            self.with_network_aliases(*network_aliases)
        for volume in volumes or ():
            self.with_volume_mapping(*volume)
        for transferable in transferables or ():
            self.with_copy_into_container(*transferable)

    # What describes the broker.

    def with_env(self, key: str, value: str) -> Self:
        """Set an option of the broker, such as KAFKA_AUTO_CREATE_TOPICS_ENABLE."""
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set options of the broker."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_env_file(self, env_file: str | PathLike[str]) -> Self:
        """Set the options in a file of lines NAME=VALUE."""
        for line in Path(env_file).read_text().splitlines():
            text = line.strip().removeprefix("export ")
            if text and not text.startswith("#"):
                key, separator, value = text.partition("=")
                if not separator:
                    raise InvalidValueError(f"{env_file}: {line!r} is not of the form NAME=VALUE")
                self.with_env(key.strip(), value.strip().strip("\"'"))
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Have the broker listen on this port of the machine, instead of one that is free."""
        self.ports[_port(container)] = None if host is None else int(_port(host))
        return self

    def with_exposed_ports(self, *ports: str | int) -> Self:
        """Name ports; the broker has one, which is `port`."""
        for port in ports:
            self.ports.setdefault(_port(port), None)
        return self

    # What only describes a container.

    def with_kraft(self) -> Self:
        """Accept the choice of a controller: clients see no difference."""
        self.kraft_enabled = True
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Accept an id; a new cluster draws one of its own."""
        self.cluster_id = cluster_id
        return self

    def with_name(self, name: str) -> Self:
        """Accept a name."""
        self._name = name
        return self

    def with_command(self, command: str | list[str]) -> Self:
        """Accept a command, which starts the broker in the container."""
        return self

    def with_kwargs(self, **kwargs: Any) -> Self:
        """Accept arguments of Docker."""
        return self

    def waiting_for(self, strategy: object) -> Self:
        """Accept a strategy; `start` returns when the broker serves."""
        return self

    def maybe_emulate_amd64(self) -> Self:
        """Do nothing: nothing is emulated."""
        return self

    # What a broker in this process cannot give.

    def with_network(self, network: object) -> NoReturn:
        """Raise: the broker is in no network of containers."""
        _cannot("with_network", "the broker listens on this machine, not in a container network")

    def with_network_aliases(self, *aliases: str) -> NoReturn:
        """Raise: the broker is in no network of containers."""
        _cannot("with_network_aliases", "the broker's name is that of this machine")

    def with_volume_mapping(
        self, host: str | PathLike[str], container: str, mode: str = "ro"
    ) -> NoReturn:
        """Raise: there is no file system of a container."""
        _cannot("with_volume_mapping", "use Cluster, whose data outlives stop() until close()")

    def with_tmpfs_mount(self, container_path: str, size: str | None = None) -> NoReturn:
        """Raise: there is no file system of a container."""
        _cannot("with_tmpfs_mount", "set TMPDIR to have the broker's data elsewhere")

    def with_copy_into_container(
        self, transferable: object, destination_in_container: str, mode: int = 0o644
    ) -> NoReturn:
        """Raise: there is no file system of a container."""
        _cannot("with_copy_into_container", "set options with with_env")

    def copy_into_container(
        self, transferable: object, destination_in_container: str, mode: int = 0o644
    ) -> NoReturn:
        """Raise: there is no file system of a container."""
        _cannot("copy_into_container", "set options with with_env")

    def copy_from_container(self, source_in_container: str, destination_on_host: Path) -> NoReturn:
        """Raise: there is no file system of a container."""
        _cannot("copy_from_container", "use Cluster, which has its data in data_dir")

    def get_wrapped_container(self) -> NoReturn:
        """Raise: there is no container."""
        _cannot("get_wrapped_container", "use exec, get_logs or status")

    def get_docker_client(self) -> NoReturn:
        """Raise: there is no Docker."""
        _cannot("get_docker_client", "nothing of Docker is used")

    # From start to stop.

    def start(self, timeout: int = 30) -> Self:
        """Start a new broker, without data, and return when it serves.

        It takes a fraction of a second, or fails; the timeout is not used.
        """
        if self._cluster is not None:
            raise InvalidValueError("the container is already started: stop() it first")
        cluster = Cluster(1, self._options())
        self._log.open()
        try:
            cluster.start()
        except BaseException:
            self._log.close()
            cluster.close()
            raise
        self._cluster = cluster
        self._id = uuid.uuid4().hex
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and delete its data; without one, this is a no-op."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            try:
                cluster.close()
            finally:
                self._log.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.stop()

    # What is asked of a started one.

    @property
    def cluster(self) -> Cluster:
        """The cluster behind it, which can be killed and restarted."""
        if self._cluster is None:
            raise InvalidValueError("the container is not started: call start() or use `with`")
        return self._cluster

    def get_bootstrap_server(self) -> str:
        """Return the address for bootstrap.servers."""
        return self.cluster.bootstrap

    def get_container_host_ip(self) -> str:
        """Return the host of the broker's address."""
        return self.cluster.bootstrap.rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of the machine that stands for a port of the container."""
        if str(port) != str(self.port):
            raise InvalidValueError(f"port {port}: the broker has one port, called {self.port}")
        return int(self.cluster.bootstrap.rpartition(":")[2])

    def get_container_id(self) -> str:
        """Return an id, another one after each start."""
        assert self.cluster
        return self._id

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return the lines of the logger `barnabas` since the start, and no standard error.

        They begin at the level of that logger, which is WARNING unless logging is configured.
        """
        return self._log.text(), b""

    def get_container_info(self) -> None:
        """Return nothing: there is no container to describe."""

    @property
    def status(self) -> str:
        """Return `running`, or `not_started`."""
        return "not_started" if self._cluster is None else "running"

    def reload(self) -> None:
        """Do nothing: what is asked is always current."""

    def wait(self) -> NoReturn:
        """Raise: the broker runs until `stop`."""
        _cannot("wait", "the broker runs until stop()")

    def exec(self, command: str | list[str] | Any) -> ExecResult:
        """Run one of Kafka's tools, such as `kafka-topics --create …`, with our tools of that name.

        Their addresses are those inside of a container (localhost:9092, or `port`), and become
        the broker's.
        """
        command = getattr(command, "command", command)  # testcontainers' ExecConfig has it inside
        words = shlex.split(command) if isinstance(command, str) else [*command]
        tool = Path(words[0]).name.removesuffix(".sh") if words else ""
        if not tool.startswith("kafka-"):
            _cannot(f"exec {' '.join(words)}", "only Kafka's tools can run, such as kafka-topics")
        inside = {str(_BROKER_PORT), str(self.port)}
        address = self.get_bootstrap_server()

        def outside(found: re.Match[str]) -> str:
            return address if found[2] in inside else found[0]

        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "barnabas.cli",
                tool,
                *(_LOCAL.sub(outside, w) for w in words[1:]),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_EXEC_TIMEOUT_S,
            check=False,
        )
        return ExecResult(done.returncode, done.stdout)

    def _options(self) -> dict[str, str]:
        """Return the options of the broker that its environment and ports describe."""
        options = options_of_environment(self.env)
        host = self.ports.get(str(self.port))
        if host is not None:
            options["listeners"] = f"PLAINTEXT://127.0.0.1:{host}"
        return options


def options_of_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return broker options by the variables of Confluent's images.

    `KAFKA_` is left out; one underscore is a dot, two are a dash, three are an underscore.
    """
    return {
        re.sub("_{1,3}", lambda run: " .-_"[len(run[0])], key.removeprefix("KAFKA_")).lower(): value
        for key, value in environment.items()
        if key.startswith("KAFKA_") and _OF_THE_CONTAINER.fullmatch(key) is None
    }


def _port(given: str | int) -> str:
    text = str(given).partition("/")[0]
    if not text.isdigit():
        raise InvalidValueError(f"port {given!r}: must be a number")
    return text


def _cannot(what: str, instead: str) -> NoReturn:
    raise InvalidValueError(f"{what}: not possible without a container; {instead}")


class _LogLines(logging.Handler):
    """The log of this process's brokers, kept while the container runs."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s %(message)s (%(name)s)"))
        self._lines: list[str] = []

    def open(self) -> None:
        self._lines = []
        logging.getLogger("barnabas").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._lines) < _LOG_LINES_MAX:
            self._lines.append(self.format(record))

    def close(self) -> None:
        logging.getLogger("barnabas").removeHandler(self)
        super().close()

    def text(self) -> bytes:
        return "".join(f"{line}\n" for line in self._lines).encode()

"""The options of each worker, from those that were given once for all of them.

    plan = WorkerPlan({"listeners": "PLAINTEXT://:9092", "log.dirs": "/data"}, "machine-7")
    plan.values_of(2)       # broker.id=2, listeners=PLAINTEXT://:9093, log.dirs=/data/worker-2, …

Worker 1 has the id and the ports that were given, and each further one the next ones. Each has
directories of its own. The rack is the machine, so that replicas of a partition are on others if
there are any.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Endpoint
from barnabas.model.errors import ConfigError

WORKERS_MAX = 256
FIRST_ID = 1
BALANCE_S = "30"
"""How often leaders that are unevenly spread are moved back, in seconds, unless options say."""
METRICS_OF_A_WORKER = "127.0.0.1:0"
"""Where a worker serves its metrics: only the supervisor asks there."""

Ports = Mapping[str, int]
"""The port of each listener, by the listener's name."""


def directory_of(directory: str, number: int) -> str:
    """Return a worker's directory below one that was given for all."""
    return f"{directory.rstrip('/')}/worker-{number}"


class WorkerPlan:
    """What each worker of a machine is told; `check` says whether it can work."""

    def __init__(self, values: Mapping[str, str], machine: str) -> None:
        """Take the values of broker options by name; raise ConfigError if one is invalid."""
        self._values = dict(values)
        self._machine = machine
        self.options = BrokerOptions.parse(self._values)
        self.count = self.options.barnabas_workers
        """How many workers there are."""
        self.has_tree = self.options.zookeeper_connect is None
        """Whether the workers share a tree of this machine, instead of ZooKeeper."""

    @property
    def numbers(self) -> range:
        """Return the workers' numbers."""
        return range(1, self.count + 1)

    def broker_id(self, number: int) -> int:
        """Return the broker id of a worker."""
        first = self.options.broker_id
        return (FIRST_ID if first < 0 else first) + number - 1

    def check(self) -> None:
        """Raise ConfigError unless every worker can have options of its own."""
        if not 1 <= self.count <= WORKERS_MAX:
            raise ConfigError(f"barnabas.workers={self.count}: must be 1 to {WORKERS_MAX}")
        if not self.has_tree and self.options.broker_id < 0:
            raise ConfigError(
                "broker.id is not set: workers that join a cluster with --zookeeper get "
                "consecutive ids, so --id must say the first one"
            )
        taken: dict[tuple[int, bool], tuple[int, Endpoint]] = {}
        for number in self.numbers:
            for endpoint in BrokerOptions.parse(self.values_of(number)).endpoints.bind:
                place = endpoint.port, ":" in endpoint.host
                other, before = taken.setdefault(place, (number, endpoint))
                if endpoint.port and before is not endpoint:
                    raise ConfigError(
                        f"listeners: worker {number} would listen on {endpoint}, and worker {other}"
                        f" on {before}: leave {self.count} ports for each listener"
                    )

    def values_of(self, number: int, ports: Ports | None = None) -> dict[str, str]:
        """Return the option values of a worker.

        `ports` are those that it had before, which it gets again where any port may be used.
        """
        options, values = self.options, dict(self._values)
        values["broker.id"] = str(self.broker_id(number))
        for name, endpoints in (
            ("listeners", options.endpoints.bind),
            ("advertised.listeners", options.endpoints.advertised),
        ):
            if name in values:
                values[name] = ",".join(
                    str(each._replace(port=_port(each, number, ports))) for each in endpoints
                )
        values["log.dirs"] = ",".join(
            directory_of(each, number) for each in options.log_directories
        )
        values.pop("log.dir", None)
        # The first to start leads all that the others have not come back for yet.
        values.setdefault("leader.imbalance.check.interval.seconds", BALANCE_S)
        if options.barnabas_log_dir is not None:
            values["barnabas.log.dir"] = directory_of(options.barnabas_log_dir, number)
        if options.broker_rack is None:
            values["broker.rack"] = self._machine
        if options.metrics_address is not None:
            values["barnabas.metrics.listener"] = METRICS_OF_A_WORKER
            values["barnabas.metrics.ssl.enable"] = "false"
        if number != 1:
            values.pop("barnabas.console.listener", None)
        return values


def _port(endpoint: Endpoint, number: int, ports: Ports | None) -> int:
    if endpoint.port:
        return endpoint.port + number - 1
    return (ports or {}).get(endpoint.name, 0)

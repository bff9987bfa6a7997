"""All options of a broker, collected from one section per subject.

    options = BrokerOptions.parse({"log.dirs": "/data", "listeners": "PLAINTEXT://:9092"})
    for line in options.warnings(): ...       # unknown names, and options that have no effect
    options.log_directories, options.endpoints.bind

Invariant: an instance is consistent. Checks that span several options (ids, listeners, lags) are
here.
"""

from __future__ import annotations

from typing import Any

from barnabas.config.broker.cleaner import CleanerOptions
from barnabas.config.broker.groups import GroupsOptions
from barnabas.config.broker.identity import IdentityOptions
from barnabas.config.broker.kraft import KraftOptions
from barnabas.config.broker.network import NetworkOptions, parse_connection_overrides
from barnabas.config.broker.own import MetricsAddress, OwnOptions, parse_metrics_address
from barnabas.config.broker.quotas import QuotasOptions
from barnabas.config.broker.replication import ReplicationOptions
from barnabas.config.broker.reporting import ReportingOptions
from barnabas.config.broker.sasl import SaslOptions
from barnabas.config.broker.security import SecurityOptions, parse_super_users
from barnabas.config.broker.storage import StorageOptions
from barnabas.config.broker.tls import TlsOptions
from barnabas.config.broker.topics import TopicsOptions
from barnabas.config.broker.transactions import TransactionsOptions
from barnabas.config.broker.zookeeper import ZookeeperOptions
from barnabas.config.jaas import jaas_entry
from barnabas.config.listeners import Listeners, parse_listeners
from barnabas.config.login import LoginOptions
from barnabas.config.option import Option
from barnabas.model.errors import ConfigError

LISTENER_PREFIX = "listener.name."

LOGIN_DOTS = "listener.name.x.y.sasl.jaas.config".count(".")

_PER_LISTENER = (
    "connections.max.reauth.ms",
    "max.connection.creation.rate",
    "max.connections",
    "num.network.threads",
    "principal.builder.class",
)


def listener_prefix(listener: str) -> str:
    """Return the prefix of option names that are set for one listener."""
    return f"{LISTENER_PREFIX}{listener.lower()}."


class BrokerOptions(
    IdentityOptions,
    NetworkOptions,
    TopicsOptions,
    StorageOptions,
    CleanerOptions,
    ReplicationOptions,
    GroupsOptions,
    TransactionsOptions,
    SecurityOptions,
    SaslOptions,
    LoginOptions,
    TlsOptions,
    QuotasOptions,
    ReportingOptions,
    ZookeeperOptions,
    KraftOptions,
    OwnOptions,
):
    """All options of a broker."""

    log_directories: tuple[str, ...]
    """The data directories: log.dirs, or log.dir if that is unset."""

    endpoints: Listeners
    """The parsed listeners and advertised.listeners."""

    metrics_address: MetricsAddress | None
    """The parsed barnabas.metrics.listener."""

    @classmethod
    def find(cls, name: str) -> Option | None:
        """Return the option that a name sets, with or without a listener prefix, or None."""
        if not name.startswith(LISTENER_PREFIX):
            return cls.options.get(name)
        _, _, rest = name[len(LISTENER_PREFIX) :].partition(".")
        if rest in _PER_LISTENER or rest.startswith(("ssl.", "sasl.")):
            return cls.options.get(rest)
        _, _, rest = rest.partition(".")  # listener.name.<listener>.<mechanism>.<option>
        of_mechanism = rest.startswith("sasl.") or rest == "connections.max.reauth.ms"
        return cls.options.get(rest) if of_mechanism else None

    def for_listener(self, listener: str, mechanism: str | None = None) -> BrokerOptions:
        """Return the options as one listener, and one SASL mechanism on it, see them."""
        values: dict[str, object] = {}
        prefixes = [listener_prefix(listener)]
        if mechanism is not None:
            prefixes.append(f"{prefixes[0]}{mechanism.lower()}.")
        for prefix in prefixes:  # the more specific one last, so that it wins
            for name, value in self.given.items():
                rest = name.removeprefix(prefix)
                if rest != name and rest in self.options:
                    values[rest] = value
        return self.with_overrides(values) if values else self

    def warnings(self) -> list[str]:
        """Return what an operator should know; a login counts for one mechanism of a listener."""
        lines = super().warnings()
        for name in self.given:
            if name.endswith("sasl.jaas.config") and name.count(".") < LOGIN_DOTS:
                lines.append(
                    f"{name} is set, but has no effect: the name must be "
                    "listener.name.<listener>.<mechanism>.sasl.jaas.config"
                )
        return lines

    def _derive(self, attributes: dict[str, Any]) -> None:
        self._agree_on_id(attributes)
        directories = self.log_dir if self.log_dirs is None else self.log_dirs
        attributes["log_directories"] = tuple(
            part.strip() for part in directories.split(",") if part.strip()
        )
        if not self.log_directories:
            raise ConfigError(f"log.dirs={directories}: at least one directory is required")
        attributes["endpoints"] = parse_listeners(
            self.listeners,
            self.advertised_listeners,
            self.listener_security_protocol_map,
            inter_broker_name=self.inter_broker_listener_name,
            inter_broker_protocol=(
                self.security_inter_broker_protocol
                if "security.inter.broker.protocol" in self.given
                else None
            ),
            control_plane_name=self.control_plane_listener_name,
        )
        attributes["metrics_address"] = parse_metrics_address(self.barnabas_metrics_listener)
        parse_connection_overrides(self.max_connections_per_ip_overrides)
        parse_super_users(self.super_users)
        for name, value in self.given.items():
            if name.startswith(LISTENER_PREFIX) and name.endswith(".sasl.jaas.config"):
                jaas_entry(value, name)
        self._at_most("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
        self._at_most("replica.fetch.wait.max.ms", "replica.lag.time.max.ms")
        self._at_most("group.min.session.timeout.ms", "group.max.session.timeout.ms")

    def _agree_on_id(self, attributes: dict[str, Any]) -> None:
        if "broker.id" in self.given and "node.id" in self.given and self.broker_id != self.node_id:
            raise ConfigError(f"node.id={self.node_id}: must equal broker.id ({self.broker_id})")
        identity = self.node_id if "node.id" in self.given else self.broker_id
        attributes["broker_id"] = attributes["node_id"] = identity
        if not self.broker_id_generation_enable:
            if identity < 0:
                raise ConfigError(
                    f"broker.id={identity}: must be at least 0 when "
                    "broker.id.generation.enable=false"
                )
        elif identity > self.reserved_broker_max_id:
            raise ConfigError(
                f"broker.id={identity}: must be at most reserved.broker.max.id "
                f"({self.reserved_broker_max_id}); ids above it are generated"
            )

    def _at_most(self, name: str, limit: str) -> None:
        if self.value(name) > self.value(limit):
            raise ConfigError(
                f"{name}={self.value(name)}: must be at most {limit} ({self.value(limit)})"
            )

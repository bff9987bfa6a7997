"""The properties file of the second MirrorMaker: clusters, and flows between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import ClientSection, by_option, spellings
from barnabas.config.clients.producer import ProducerOptions
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.engine import MirrorOptions
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.model.errors import ConfigError

IDENTITY = "IdentityReplicationPolicy"
TOPICS_EXCLUDED = (r".*[\-\.]internal", r".*\.replica", "__.*")
GROUPS_EXCLUDED = ("console-consumer-.*", "connect-.*", "__.*")
NO_EFFECT = (
    "emit.heartbeats.enabled",
    "emit.checkpoints.enabled",
    "sync.topic.acls.enabled",
    "offset.lag.max",
    "tasks.max",
    "dedicated.mode.enable.internal.rest",
)
"""Options of Kafka's that a user may rely on; that they do nothing is said if they are set."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What is copied from one cluster to another."""

    source: str
    target: str
    mirror: MirrorOptions
    groups: tuple[str, ...]
    groups_excluded: tuple[str, ...]
    sync_groups_s: float | None
    """How often offsets of groups are translated; None: never."""

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


class FlowsFile:
    """The properties of one file; a flow's own precede those of all."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self.clusters = listed(properties.get("clusters", ""))
        if not self.clusters:
            raise ConfigError("clusters is not set: it lists the aliases, as in: clusters = A, B")
        for alias in self.clusters:
            if not properties.get(f"{alias}.bootstrap.servers"):
                raise ConfigError(f"{alias}.bootstrap.servers is not set")

    def flows(self, targets: Iterable[str] | None = None) -> list[Flow]:
        """Return the flows that are enabled, to all clusters or to some; raise without any."""
        wanted = self.clusters if targets is None else list(targets)
        unknown = [alias for alias in wanted if alias not in self.clusters]
        if unknown:
            raise ConfigError(
                f"--clusters {unknown[0]}: not one of clusters = {', '.join(self.clusters)}"
            )
        found = [
            self._flow(source, target)
            for source in self.clusters
            for target in wanted
            if source != target and _is_true(self._of(source, target, "enabled", "false"))
        ]
        if not found:
            raise ConfigError("no flow is enabled; for one from A to B, set A->B.enabled = true")
        return found

    def without_effect(self) -> list[str]:
        """Return the options in the file that do nothing here."""
        return sorted(
            name
            for name, value in self._properties.items()
            if name.endswith(NO_EFFECT) and value.strip().lower() not in ("false", "0")
        )

    def _of(self, source: str, target: str, name: str, default: str) -> str:
        properties = self._properties
        return properties.get(f"{source}->{target}.{name}", properties.get(name, default)).strip()

    def _number(self, source: str, target: str, name: str, default: str) -> int:
        text = self._of(source, target, name, default)
        if not re.fullmatch(r"-?[0-9]+", text):
            raise ConfigError(f"{name}={text}: not a whole number")
        return int(text)

    def _flow(self, source: str, target: str) -> Flow:
        policy = self._of(source, target, "replication.policy.class", "DefaultReplicationPolicy")
        separator = self._of(source, target, "replication.policy.separator", ".")
        identity = policy.rpartition(".")[2] == IDENTITY
        excluded = self._excluded(source, target, "topics", TOPICS_EXCLUDED)
        if not identity:  # topics that came from the target do not go back
            excluded = (*excluded, f"{re.escape(target + separator)}.*")
        mirror = MirrorOptions(
            self._client(source, "consumer", ConsumerOptions),
            self._client(target, "producer", ProducerOptions),
            TopicFilter(
                listed(self._of(source, target, "topics", ".*")),
                excluded,
                prefix="" if identity else source + separator,
            ),
            name=f"mm2-{source}-{target}",
            refresh_interval_ms=1000
            * self._number(source, target, "refresh.topics.interval.seconds", "600"),
            replication_factor=self._number(source, target, "replication.factor", "2"),
        )
        synced = _is_true(self._of(source, target, "sync.group.offsets.enabled", "false"))
        interval_s = self._number(source, target, "sync.group.offsets.interval.seconds", "60")
        return Flow(
            source,
            target,
            mirror,
            tuple(listed(self._of(source, target, "groups", ".*"))),
            self._excluded(source, target, "groups", GROUPS_EXCLUDED),
            max(1, interval_s) if synced else None,
        )

    def _excluded(
        self, source: str, target: str, what: str, default: tuple[str, ...]
    ) -> tuple[str, ...]:
        older = self._of(source, target, f"{what}.blacklist", ", ".join(default))
        return tuple(listed(self._of(source, target, f"{what}.exclude", older)))

    def _client(self, alias: str, role: str, section: type[ClientSection]) -> ClientOptions:
        """Return the options of a cluster's clients: of all clusters, its own, of its role."""
        known = spellings(section)
        options: dict[str, str] = {}
        for prefix in ("", f"{alias}.", f"{alias}.{role}."):
            for name, value in self._properties.items():
                if name.startswith(prefix) and name.removeprefix(prefix) in known:
                    options[name.removeprefix(prefix)] = value
        return ClientOptions(by_option(section, options))


def listed(text: str) -> list[str]:
    """Return the parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_true(text: str) -> bool:
    return text.lower() == "true"

"""A client's dict of librdkafka's properties: what becomes of each.

Most are options of ours under the same or another name. Callbacks belong to the client itself. The
others are accepted to no effect, each with the reason, or rejected. What is in neither list is an
error that names the closest property.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from barnabas.compat.confluent_kafka.failures import invalid
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import ClientSection, parse_client_options, spellings
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import ConfigError

log = logging.getLogger("barnabas.compat.confluent_kafka")

OURS: Mapping[str, str] = MappingProxyType(
    {
        "message.timeout.ms": "delivery.timeout.ms",
        "message.max.bytes": "max.request.size",
        "socket.timeout.ms": "request.timeout.ms",
        "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
        "auto.commit.enable": "enable.auto.commit",
        "broker.address.ttl": "metadata.max.age.ms",
        "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
        "enable.ssl.certificate.verification": "ssl.check.hostname",
    }
)
"""Properties that are options of ours under names that our own clients do not take."""

_TUNING = "the network's side of the client is ours, and tunes itself"
_QUEUES = "fetched records are bounded by fetch.max.bytes and max.partition.fetch.bytes"
_VERSIONS = "versions are negotiated with every broker"
_LOGS = "log lines go to Python's logging, where their level is set"
_LEGACY = "only the legacy consumer of librdkafka had it"
_TLS = "Python's ssl module decides"

NO_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        "builtin.features": "there are no optional features",
        "client.software.name": "brokers are told barnabas",
        "client.software.version": "brokers are told our version",
        "message.copy.max.bytes": "messages are always copied into a batch",
        "topic.metadata.refresh.fast.interval.ms": _TUNING,
        "topic.metadata.refresh.fast.cnt": _TUNING,
        "topic.metadata.refresh.sparse": "only topics in use are asked for",
        "metadata.request.timeout.ms": "socket.timeout.ms is for all requests",
        "debug": _LOGS,
        "log_level": _LOGS,
        "log.queue": _LOGS,
        "log.thread.name": _LOGS,
        "log.connection.close": _LOGS,
        "socket.blocking.max.ms": _TUNING,
        "socket.keepalive.enable": "the operating system's default holds; see socket.options",
        "socket.nagle.disable": "TCP_NODELAY is always set",
        "socket.max.fails": _TUNING,
        "broker.address.family": "all addresses of a host name are tried in turn",
        "broker.version.fallback": _VERSIONS,
        "api.version.request": _VERSIONS,
        "api.version.request.timeout.ms": _VERSIONS,
        "api.version.fallback.ms": _VERSIONS,
        "reconnect.backoff.jitter.ms": "pauses always have jitter",
        "enable.sparse.connections": "connections are opened when they are needed",
        "enable.random.seed": "Python seeds its own generator",
        "enable.metrics.push": "metrics are not pushed by the client",
        "enable.gapless.guarantee": "transactions and idempotence fail a batch, never skip it",
        "max.poll.records": "poll returns one message, and consume is told how many",
        "queue.buffering.backpressure.threshold": _TUNING,
        "batch.num.messages": "batches are bounded by their size, see batch.size",
        "queuing.strategy": "each partition has a queue, first in, first out",
        "produce.offset.report": "offsets are always reported",
        "queued.min.messages": _QUEUES,
        "queued.max.messages.kbytes": _QUEUES,
        "fetch.queue.backoff.ms": _QUEUES,
        "fetch.error.backoff.ms": "retry.backoff.ms is for all requests",
        "coordinator.query.interval.ms": "a coordinator is looked up when it is needed",
        "consume.callback.max.messages": _LEGACY,
        "offset.store.method": _LEGACY,
        "offset.store.path": _LEGACY,
        "offset.store.sync.interval.ms": _LEGACY,
        "group.protocol.type": "groups of consumers have one type",
        "sticky.partitioning.linger.ms": "without a key, one partition gets a whole batch",
        "internal.termination.signal": "no signal ends our threads",
        "ssl.curves.list": _TLS,
        "ssl.sigalgs.list": _TLS,
        "ssl.providers": _TLS,
        "ssl.engine.location": _TLS,
        "ssl.engine.id": _TLS,
        "https.ca.location": "a token's address is checked as brokers are, see ssl.ca.location",
        "https.ca.pem": "a token's address is checked as brokers are, see ssl.ca.pem",
        "sasl.kerberos.kinit.cmd": "tickets come from the cache or the keytab through GSSAPI",
        "sasl.kerberos.min.time.before.relogin": "GSSAPI renews tickets",
        "sasl.oauthbearer.config": "unsecured tokens need sasl.oauth.token.provider",
        "enable.sasl.oauthbearer.unsecure.jwt": "a token provider says which tokens it makes",
        "sasl.oauthbearer.method": "the address of a token endpoint decides",
        "plugin.library.paths": "librdkafka's plugins are for librdkafka",
        "test.mock.num.brokers": "use barnabas.testing.Cluster",
        "test.mock.broker.rtt": "use barnabas.testing.Cluster",
    }
)
"""Properties that are accepted to no effect, and why."""

CALLBACKS = (
    "error_cb",
    "stats_cb",
    "throttle_cb",
    "logger",
    "on_delivery",
    "on_commit",
    "oauth_cb",
)
"""Properties whose values are functions or objects of the program."""

OWN = (
    "statistics.interval.ms",
    "queue.buffering.max.messages",
    "queue.buffering.max.kbytes",
    "delivery.report.only.error",
    "topic.metadata.propagation.max.ms",
    "partitioner",
    "enable.partition.eof",
    "enable.auto.offset.store",
    "compression.level",
    "topic.blacklist",
    "default.topic.config",
)
"""Properties that the classes of this package handle themselves."""

PARTITIONERS = (
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
)

_RESETS = {
    **dict.fromkeys(("smallest", "earliest", "beginning"), "earliest"),
    **dict.fromkeys(("largest", "latest", "end"), "latest"),
    "error": "none",
}

_DEFAULTS: Mapping[type[ClientSection], Mapping[str, Any]] = MappingProxyType(
    {
        ProducerOptions: {"delivery.timeout.ms": 300_000, "linger.ms": 5},
        ConsumerOptions: {
            "allow.auto.create.topics": False,
            "partition.assignment.strategy": "range,roundrobin",
        },
        AdminOptions: {},
    }
)
"""librdkafka's defaults where a program may rely on them."""


@dataclass
class Settings:
    """What is not an option of ours, with librdkafka's defaults."""

    error_cb: Callable[..., object] | None = None
    stats_cb: Callable[..., object] | None = None
    throttle_cb: Callable[..., object] | None = None
    logger: logging.Logger | None = None
    on_delivery: Callable[..., object] | None = None
    on_commit: Callable[..., object] | None = None
    statistics_interval_ms: int = 0
    queue_messages_max: int = 100_000
    queue_kbytes_max: int = 1_048_576
    only_errors: bool = False
    propagation_ms_max: int = 30_000
    partitioner: str = "consistent_random"
    partition_eof: bool = False
    auto_offset_store: bool = True
    commits_stored: bool = False
    """Whether stored offsets are committed by the client, from time to time."""
    blocked_topics: tuple[str, ...] = field(default_factory=tuple)


def merged(config: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a constructor: a dict, keywords, or both."""
    if len(config) > 1 or (config and not isinstance(config[0], Mapping)):
        raise TypeError("expected configuration dict")
    if not config and not keywords:
        raise TypeError("expected configuration dict")
    properties: dict[str, Any] = {**(config[0] if config else {}), **keywords}
    topic_config = properties.pop("default.topic.config", None)
    if isinstance(topic_config, Mapping):
        properties = {**topic_config, **properties}
    return properties


def parse(section: type[ClientSection], properties: Mapping[str, Any]) -> tuple[Any, Settings]:
    """Return our options and the settings that properties describe; raise KafkaException."""
    settings = Settings()
    known = spellings(section)
    given: dict[str, Any] = dict(_DEFAULTS[section])
    without_effect: list[str] = []
    for name, value in properties.items():
        if name in CALLBACKS:
            _take_callback(section, settings, given, name, value)
        elif name in OWN:
            _take_own(section, settings, given, name, value)
        elif name in NO_EFFECT:
            without_effect.append(name)
        else:
            ours = OURS.get(name, name)
            if ours in known:
                given[known[ours]] = _value(known[ours], value)
            elif not _belongs_to_another(section, ours):
                raise invalid(f'No such configuration property: "{name}"{_nearest(name, known)}')
            else:
                without_effect.append(name)
    for name in without_effect:
        reason = NO_EFFECT.get(name, "it is for another kind of client")
        log.info("%s has no effect: %s", name, reason)
    _join(section, given, settings)
    try:
        return parse_client_options(section, given), settings
    except ConfigError as failure:
        raise invalid(str(failure)) from failure


def _value(option: str, value: Any) -> Any:
    """Return a value in our words."""
    if option == "auto.offset.reset":
        if str(value) not in _RESETS:
            raise invalid(f"auto.offset.reset={value}: must be one of {', '.join(_RESETS)}")
        return _RESETS[str(value)]
    if option == "security.protocol":
        return str(value).upper()
    if option == "partition.assignment.strategy" and isinstance(value, str):
        return ",".join(name.strip() for name in value.split(","))
    return value


def _join(section: type[ClientSection], given: dict[str, Any], settings: Settings) -> None:
    """Settle what concerns several options."""
    if section is ProducerOptions:
        given["buffer.memory"] = settings.queue_kbytes_max * 1024
        given["max.block.ms"] = settings.propagation_ms_max
        request_ms = _milliseconds("socket.timeout.ms", given.get("request.timeout.ms", 30_000))
        timeout_ms = _milliseconds("message.timeout.ms", given["delivery.timeout.ms"])
        linger_ms = _milliseconds("linger.ms", given["linger.ms"])
        if timeout_ms == 0:
            given["delivery.timeout.ms"] = 2_147_483_647  # librdkafka's 0 is forever
        elif timeout_ms < request_ms + linger_ms:
            given["linger.ms"] = min(linger_ms, timeout_ms / 2)
            given["request.timeout.ms"] = max(1, int(timeout_ms - given["linger.ms"]))
        given["partitioner.ignore.keys"] = settings.partitioner == "random"
        level = given.pop("compression.level", None)
        codec = given.get("compression.type")
        if level is not None and codec in ("gzip", "lz4", "zstd") and int(level) >= 0:
            given[f"compression.{codec}.level"] = max(1, int(level))
    if section is ConsumerOptions and not settings.auto_offset_store:
        # What is committed are the stored offsets, which our consumer does not know.
        settings.commits_stored = _boolean(
            "enable.auto.commit", given.get("enable.auto.commit", True)
        )
        given["enable.auto.commit"] = False


def _take_callback(
    section: type[ClientSection], settings: Settings, given: dict[str, Any], name: str, value: Any
) -> None:
    if name == "logger":
        settings.logger = value
        return
    if value is None:
        return
    if not callable(value):
        if name in ("on_delivery", "on_commit"):
            raise invalid(f"{name} requires a callable object")
        raise TypeError(f"expected {name} property as a callable function")
    if name == "oauth_cb":
        given["sasl.oauth.token.provider"] = _TokenProvider(
            value, str(given.get("sasl.oauthbearer.config", ""))
        )
        return
    if section is not ProducerOptions and name == "on_delivery":
        raise invalid('Property "on_delivery" is for producers')
    if section is not ConsumerOptions and name == "on_commit":
        raise invalid('Property "on_commit" is for consumers')
    setattr(settings, name, value)


class _TokenProvider:
    """A function that returns a token, its expiry and more, as our clients call it."""

    def __init__(self, function: Callable[[str], Any], config: str) -> None:
        self._function = function
        self._config = config
        self._extensions: dict[str, str] = {}

    def token(self) -> str:
        """Return a new token."""
        given = self._function(self._config)
        self._extensions = dict(given[3]) if len(given) > 3 and given[3] else {}
        return str(given[0])

    def extensions(self) -> dict[str, str]:
        """Return the extensions that came with the token."""
        return self._extensions


def _take_own(
    section: type[ClientSection], settings: Settings, given: dict[str, Any], name: str, value: Any
) -> None:
    if name == "statistics.interval.ms":
        settings.statistics_interval_ms = _number(name, value, 0, 86_400_000)
    elif name == "queue.buffering.max.messages":
        settings.queue_messages_max = _number(name, value, 0, 2_147_483_647)
    elif name == "queue.buffering.max.kbytes":
        settings.queue_kbytes_max = _number(name, value, 1, 2_147_483_647)
    elif name == "topic.metadata.propagation.max.ms":
        settings.propagation_ms_max = _number(name, value, 0, 3_600_000)
    elif name == "delivery.report.only.error":
        settings.only_errors = _boolean(name, value)
    elif name == "enable.partition.eof":
        settings.partition_eof = _boolean(name, value)
    elif name == "enable.auto.offset.store":
        settings.auto_offset_store = _boolean(name, value)
    elif name == "topic.blacklist":
        settings.blocked_topics = tuple(each for each in str(value).split(",") if each)
    elif name == "compression.level" and section is ProducerOptions:
        given["compression.level"] = _number(name, value, -1, 12)
    elif name == "partitioner":
        if value not in PARTITIONERS:
            raise invalid(
                f'Invalid value for configuration property "partitioner": {value}: must be one of '
                f"{', '.join(PARTITIONERS)}"
            )
        settings.partitioner = value


def _number(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise invalid(f'Invalid value for configuration property "{name}": {value}') from None
    if not least <= number <= most:
        raise invalid(
            f'Configuration property "{name}" value {value} is outside allowed range '
            f"{least}..{most}"
        )
    return number


def _milliseconds(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise invalid(f'Invalid value for configuration property "{name}": {value}') from None


def _boolean(name: str, value: Any) -> bool:
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    known = words.get(str(value).lower())
    if known is None:
        raise invalid(f'Expected bool value for "{name}": true or false')
    return known


def _belongs_to_another(section: type[ClientSection], name: str) -> bool:
    """Return whether a property is one of another kind of client: those are ignored."""
    others = (ProducerOptions, ConsumerOptions, AdminOptions)
    return any(name in spellings(other) for other in others if other is not section)


def _nearest(name: str, known: Mapping[str, str]) -> str:
    names = [*(each for each in known if "." in each), *OURS, *NO_EFFECT, *OWN, *CALLBACKS]
    found = difflib.get_close_matches(name, names, n=1)
    return f'; did you mean "{found[0]}"?' if found else ""

"""A client's dict of librdkafka's properties: what becomes of each.

Most are options of ours under the same or another name. Callbacks and a few others belong to the
clients of this package. `properties` has the rest, which has no effect or is rejected, with the
reasons. What is in no list is an error that names the closest property.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ssl import CERT_NONE
from types import MappingProxyType
from typing import Any

from barnabas.client.tls_context import tls_context
from barnabas.compat.confluent_kafka.failures import invalid
from barnabas.compat.confluent_kafka.logins import LOGINS, TokenCallback, TokenProvider, jaas_of
from barnabas.compat.confluent_kafka.properties import (
    CALLBACKS,
    NO_EFFECT,
    OURS,
    OWN,
    PARTITIONERS,
    REJECTED,
)
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options, spellings
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import ConfigError

log = logging.getLogger("barnabas.compat.confluent_kafka")

_RESETS = {
    **dict.fromkeys(("smallest", "earliest", "beginning"), "earliest"),
    **dict.fromkeys(("largest", "latest", "end"), "latest"),
    "error": "none",
}

_DEFAULTS: Mapping[type[CommonOptions], Mapping[str, Any]] = MappingProxyType(
    {
        ProducerOptions: {"delivery.timeout.ms": 300_000, "linger.ms": 5},
        ConsumerOptions: {
            "allow.auto.create.topics": False,
            "isolation.level": "read_committed",
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
    blocked_topics: tuple[str, ...] = ()
    verifies_certificates: bool = True
    oauth_cb: TokenCallback | None = None
    login: dict[str, str] = field(default_factory=dict)
    """Properties of logins, by their names."""


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


def parse(section: type[CommonOptions], properties: Mapping[str, Any]) -> tuple[Any, Settings]:
    """Return our options and the settings that properties describe; raise KafkaException."""
    settings = Settings()
    known = spellings(section)
    given: dict[str, Any] = dict(_DEFAULTS[section])
    without_effect: list[str] = []
    for name, value in properties.items():
        if name in CALLBACKS:
            _take_callback(section, settings, name, value)
        elif name in OWN:
            _take_own(section, settings, given, name, value)
        elif name in LOGINS:
            settings.login[name] = str(value)
        elif name in REJECTED:
            raise invalid(f'Configuration property "{name}" is not available: {REJECTED[name]}')
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
        options = parse_client_options(section, given)
        if options.uses_tls and not settings.verifies_certificates:
            context = tls_context(options)
            context.check_hostname, context.verify_mode = False, CERT_NONE
            options = options.with_overrides({"ssl.context": context})
    except ConfigError as failure:
        raise invalid(str(failure)) from failure
    return options, settings


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


def _join(section: type[CommonOptions], given: dict[str, Any], settings: Settings) -> None:
    """Settle what concerns several options."""
    mechanism = str(given.get("sasl.mechanism", "GSSAPI"))
    if settings.oauth_cb is not None:
        config = settings.login.get("sasl.oauthbearer.config", "")
        given["sasl.oauth.token.provider"] = TokenProvider(settings.oauth_cb, config)
    elif settings.login:
        given["sasl.jaas.config"] = jaas_of(mechanism, settings.login)
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
    if section is ConsumerOptions and str(given.get("auto.commit.interval.ms")) == "0":
        given["auto.commit.interval.ms"] = 2_147_483_647  # librdkafka's 0 is never
    if section is ConsumerOptions and not settings.auto_offset_store:
        # What is committed are the stored offsets, which our consumer does not know.
        settings.commits_stored = _boolean(
            "enable.auto.commit", given.get("enable.auto.commit", True)
        )
        given["enable.auto.commit"] = False


def _take_callback(section: type[CommonOptions], settings: Settings, name: str, value: Any) -> None:
    if name == "logger":
        settings.logger = value
        return
    if value is None:
        return
    if not callable(value):
        if name in ("on_delivery", "on_commit"):
            raise invalid(f"{name} requires a callable object")
        raise TypeError(f"expected {name} property as a callable function")
    if section is not ProducerOptions and name == "on_delivery":
        raise invalid('Property "on_delivery" is for producers')
    if section is not ConsumerOptions and name == "on_commit":
        raise invalid('Property "on_commit" is for consumers')
    setattr(settings, name, value)


def _take_own(
    section: type[CommonOptions], settings: Settings, given: dict[str, Any], name: str, value: Any
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
    elif name == "enable.ssl.certificate.verification":
        settings.verifies_certificates = _boolean(name, value)
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


def _belongs_to_another(section: type[CommonOptions], name: str) -> bool:
    """Return whether a property is one of another kind of client: those are ignored."""
    others = (ProducerOptions, ConsumerOptions, AdminOptions)
    return any(name in spellings(other) for other in others if other is not section)


def _nearest(name: str, known: Mapping[str, str]) -> str:
    ours = [each for each in known if "." in each]
    names = [*ours, *OURS, *NO_EFFECT, *REJECTED, *OWN, *LOGINS, *CALLBACKS]
    found = difflib.get_close_matches(name, names, n=1)
    return f'; did you mean "{found[0]}"?' if found else ""

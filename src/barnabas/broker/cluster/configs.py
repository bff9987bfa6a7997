"""Configs in effect: the broker's layers of values and the overrides of each topic.

A change is validated here and made durable by `store`, which the caller passes; `set_dynamic` and
`set_topic` are then called with the new values.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from barnabas.broker.cluster.broker_loggers import BrokerLoggers
from barnabas.config.alteration import (
    Change,
    alter_broker,
    alter_client_metrics,
    alter_cluster,
    alter_topic,
    replace_broker,
    replace_client_metrics,
    replace_cluster,
    replace_topic,
)
from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Kind
from barnabas.config.sources import BrokerSources, Described, describe_client_metrics
from barnabas.config.topic import TopicOptions, validate_overrides
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, RequestError
from barnabas.security.password_encoder import Encoding, PasswordEncoder

logger = logging.getLogger("barnabas.config")

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Types of config resources, as numbered on the wire."""

CLIENT_METRICS_ENTITY = "client-metrics"
"""Where the options of client-metrics resources are below /config, as Kafka would name it."""

Store = Callable[[str, str, Mapping[str, str]], Awaitable[None]]
"""Makes an entity's configs durable: entity type, name, values."""


class Configs:
    """The configs of this broker and of all topics."""

    def __init__(
        self,
        sources: BrokerSources,
        broker_id: Callable[[], int],
        topic_exists: Callable[[str], bool],
        check: Callable[[BrokerOptions], Awaitable[None]],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """`check` raises ConfigError if this broker could not use changed TLS options."""
        self._random_bytes = random_bytes
        self._sources = sources
        self._broker_id = broker_id
        self._topic_exists = topic_exists
        self._check = check
        self._topics: dict[str, Mapping[str, str]] = {}
        self._client_metrics: dict[str, Mapping[str, str]] = {}
        self._lock = asyncio.Lock()
        self.loggers = BrokerLoggers()
        """The levels of this process's loggers."""

    @property
    def options(self) -> BrokerOptions:
        """Return the broker's options in effect."""
        return self._sources.options

    def topic_options(self, overrides: Mapping[str, str]) -> TopicOptions:
        """Resolve a topic's options from its overrides."""
        return TopicOptions.resolve(self.options, overrides)

    def options_of(self, topic: str) -> TopicOptions | None:
        """Return a topic's options in effect; None (and a log line) if its overrides are invalid.

        Another release, or Apache Kafka in the same cluster, may have stored what this broker
        rejects.
        """
        try:
            return self.topic_options(self.overrides_of(topic))
        except ConfigError as failure:
            logger.error("topic %s: configs are invalid and have no effect: %s", topic, failure)
            return None

    def overrides_of(self, topic: str) -> Mapping[str, str]:
        """Return the overrides of a topic."""
        return self._topics.get(topic, {})

    def knows(self, topic: str) -> bool:
        """Return whether a topic's overrides were read."""
        return topic in self._topics

    def set_topic(self, topic: str, overrides: Mapping[str, str] | None) -> None:
        """Set a topic's overrides; None if it was deleted."""
        if overrides is None:
            self._topics.pop(topic, None)
        else:
            self._topics[topic] = dict(overrides)

    def set_client_metrics(self, name: str, values: Mapping[str, str]) -> None:
        """Set the options of a client-metrics resource; without options there is none."""
        if values:
            self._client_metrics[name] = dict(values)
        else:
            self._client_metrics.pop(name, None)

    @property
    def client_metrics(self) -> list[str]:
        """The names of the client-metrics resources."""
        return sorted(self._client_metrics)

    def set_dynamic(self, name: str, values: Mapping[str, str]) -> bool:
        """Set dynamic broker configs; return False if they are another's, or invalid and logged."""
        try:
            if name == nodes.DEFAULT_ENTITY:
                self._sources = self._sources.with_cluster(values)
            elif name == str(self._broker_id()):
                self._sources = self._sources.with_broker(self._decrypted(values))
            else:
                return False
        except ConfigError as failure:
            logger.error(
                "broker %s: dynamic configs are invalid and have no effect: %s", name, failure
            )
            return False
        return True

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        """Raise ConfigError if a topic cannot have these overrides."""
        validate_overrides(overrides, self.options)

    def describe_topic(
        self, overrides: Mapping[str, str], names: Iterable[str] | None = None
    ) -> list[Described]:
        """Describe the options of a topic with these overrides."""
        return self._sources.describe_topic(overrides, names)

    def describe(
        self, resource_type: int, name: str, names: Collection[str] | None
    ) -> list[Described]:
        """Describe a resource, as DescribeConfigs names it."""
        if resource_type == TOPIC:
            self._check_topic_exists(name)
            return self._sources.describe_topic(self.overrides_of(name), names)
        if resource_type == BROKER:
            if name == "":
                return self._sources.describe_cluster(names)
            self._check_broker(name)
            return self._sources.describe(names)
        if resource_type == BROKER_LOGGER:
            self._check_broker(name)
            return self.loggers.describe(names)
        if resource_type == CLIENT_METRICS:
            if not name:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "the name of a client-metrics resource must not be empty",
                )
            return describe_client_metrics(self._client_metrics.get(name, {}), names)
        if resource_type == GROUP:
            return []
        raise _unsupported(resource_type)

    async def alter(
        self,
        resource_type: int,
        name: str,
        changes: Iterable[Change],
        store: Store,
        *,
        dry_run: bool,
    ) -> None:
        """Change single values."""
        if resource_type == BROKER_LOGGER:
            self._check_broker(name)
            self.loggers.alter(changes, dry_run=dry_run)
            return
        async with self._lock:
            if resource_type == TOPIC:
                self._check_topic_exists(name)
                values = alter_topic(self.overrides_of(name), changes, self.options)
            elif resource_type == BROKER and name == "":
                values = alter_cluster(self._sources, changes)
            elif resource_type == BROKER:
                self._check_broker(name)
                changes = list(changes)
                values = alter_broker(self._sources, changes)
                await self._check_usable(values, (change.name for change in changes))
                values = self._encrypted(values)
            elif resource_type == CLIENT_METRICS:
                values = alter_client_metrics(name, self._client_metrics.get(name, {}), changes)
            else:
                raise _unsupported(resource_type)
            if not dry_run:
                await store(*_entity(resource_type, name), values)

    async def replace(
        self,
        resource_type: int,
        name: str,
        values: Mapping[str, str | None],
        store: Store,
        *,
        dry_run: bool,
    ) -> None:
        """Replace all values of a resource."""
        async with self._lock:
            if resource_type == TOPIC:
                self._check_topic_exists(name)
                checked = replace_topic(values, self.options)
            elif resource_type == BROKER and name == "":
                checked = replace_cluster(self._sources, values)
            elif resource_type == BROKER:
                self._check_broker(name)
                checked = replace_broker(self._sources, values)
                await self._check_usable(checked, values)
                checked = self._encrypted(checked)
            elif resource_type == CLIENT_METRICS:
                checked = replace_client_metrics(name, values)
            else:
                raise _unsupported(resource_type)
            if not dry_run:
                await store(*_entity(resource_type, name), checked)

    async def _check_usable(self, values: Mapping[str, str], touched: Iterable[str]) -> None:
        """Let this broker try changed TLS options: they may name files that it cannot use."""
        if not any("ssl." in name for name in touched):
            return
        try:
            await self._check(self._sources.with_broker(values).options)
        except ConfigError as failure:
            raise RequestError(ErrorCode.INVALID_CONFIG, str(failure)) from failure

    def _encrypted(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return a broker's dynamic values as they are stored: without a secret in clear."""
        stored = dict(values)
        for name in filter(_is_secret, values):
            try:
                stored[name] = self._encoder(name).encode(values[name])
            except ConfigError as failure:
                raise RequestError(ErrorCode.INVALID_CONFIG, str(failure)) from failure
        return stored

    def _decrypted(self, stored: Mapping[str, str]) -> dict[str, str]:
        values = dict(stored)
        for name in filter(_is_secret, stored):
            values[name] = self._encoder(name).decode(stored[name])
        return values

    def _encoder(self, name: str) -> PasswordEncoder:
        options = self.options
        secret, old = options.password_encoder_secret, options.password_encoder_old_secret
        if secret is None:
            raise ConfigError(
                f"{name}: is stored encrypted; set password.encoder.secret in the file of every "
                "broker, or set this option there"
            )
        encoding = Encoding(
            options.password_encoder_iterations, options.password_encoder_key_length
        )
        old_secret = old.value if old is not None else None
        return PasswordEncoder(secret.value, old_secret, encoding, self._random_bytes)

    def _check_topic_exists(self, name: str) -> None:
        if not self._topic_exists(name):
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
            )

    def _check_broker(self, name: str) -> None:
        if name != str(self._broker_id()):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"this is broker {self._broker_id()}: send the request to broker {name!r}",
            )


def _is_secret(name: str) -> bool:
    option = BrokerOptions.find(name)
    return option is not None and option.kind is Kind.PASSWORD


def _entity(resource_type: int, name: str) -> tuple[str, str]:
    if resource_type == TOPIC:
        return "topics", name
    if resource_type == CLIENT_METRICS:
        return CLIENT_METRICS_ENTITY, name
    return "brokers", name or nodes.DEFAULT_ENTITY


def _unsupported(resource_type: int) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST, f"resource type {resource_type} cannot be configured"
    )

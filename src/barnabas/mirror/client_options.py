"""Client options of the source and the target cluster, from property files and the command line.

The files are those of Kafka's MirrorMaker: consumer options for the source, producer options for
the target. Options that the mirror's guarantees depend on are set here and override the file; those
that the file leaves out get defaults for throughput.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import ClientSection, by_option, parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.config.properties import read_properties
from barnabas.model.errors import ConfigError, InvalidValueError

NOTHING: Mapping[str, str] = MappingProxyType({})
COMMON_DEFAULTS = {"bootstrap.timeout.ms": "5000", "client.id": "barnabas-mirror"}
CONSUMER_DEFAULTS = COMMON_DEFAULTS | {
    "isolation.level": "read_committed",
}
CONSUMER_SETTINGS = {
    "enable.auto.commit": "false",  # the mirror stores its positions itself
    "auto.offset.reset": "none",  # the mirror handles an offset out of range
    "allow.auto.create.topics": "false",
}
PRODUCER_DEFAULTS = COMMON_DEFAULTS | {
    "batch.size": "262144",
    "buffer.memory": "67108864",
    "max.request.size": "67108864",  # max.message.bytes of the topic is the limit
    "compression.type": "lz4",  # the added headers compress well
    "max.block.ms": "30000",
}
PRODUCER_SETTINGS = {"enable.idempotence": "true", "acks": "all"}

MIRROR_OPTIONS = ("group.id", "auto.offset.reset")
"""What the mirror itself reads from a consumer's file."""

IGNORED = (
    "key.deserializer",
    "value.deserializer",
    "key.serializer",
    "value.serializer",
    "interceptor.classes",
    "partitioner.class",
    "partition.assignment.strategy",
    "group.instance.id",
    "transactional.id",
)
"""What a mirror, which copies bytes to the same partitions, does not use."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The options of one cluster's clients, by Kafka's names."""

    given: Mapping[str, str] = field(default_factory=dict, repr=False)  # it has passwords

    @property
    def admin(self) -> dict[str, Any]:
        """The options of an admin client."""
        known = AdminOptions.options
        own = {name: value for name, value in self.given.items() if name in known}
        return COMMON_DEFAULTS | own

    @property
    def consumer(self) -> dict[str, Any]:
        """The options of a consumer of the source, without a group."""
        dropped = (*MIRROR_OPTIONS, *IGNORED)
        own = {name: value for name, value in self.given.items() if name not in dropped}
        return CONSUMER_DEFAULTS | own | CONSUMER_SETTINGS

    def producer(self, transactional_id: str) -> dict[str, Any]:
        """Return the options of a transactional producer."""
        own = {name: value for name, value in self.given.items() if name not in IGNORED}
        return PRODUCER_DEFAULTS | own | PRODUCER_SETTINGS | {"transactional.id": transactional_id}

    @property
    def target_consumer(self) -> dict[str, Any]:
        """The options of a consumer of the target, whose file is a producer's."""
        return CONSUMER_DEFAULTS | self.admin | CONSUMER_SETTINGS


def read_source(
    file: str | None, bootstrap: str | None, otherwise: Mapping[str, str] = NOTHING
) -> ClientOptions:
    """Read the options of the source; an address on the command line overrides the file's.

    Without a file, the options are those of `otherwise`.
    """
    options = _read("--consumer.config", file, bootstrap, "--source", ConsumerOptions, otherwise)
    with _named("--consumer.config", file):
        parse_client_options(ConsumerOptions, options.consumer)  # reject a wrong one early
    return options


def read_target(
    file: str | None, bootstrap: str | None, otherwise: Mapping[str, str] = NOTHING
) -> ClientOptions:
    """Read the options of the target; an address on the command line overrides the file's.

    Without a file, the options are those of `otherwise`.
    """
    options = _read("--producer.config", file, bootstrap, "--target", ProducerOptions, otherwise)
    with _named("--producer.config", file):
        parse_client_options(ProducerOptions, options.producer("checked"))
    return options


@contextmanager
def _named(option: str, file: str | None) -> Iterator[None]:
    """Prefix the errors of options with the name of the file that has them."""
    try:
        yield
    except ConfigError as failure:
        if file is None:
            raise
        raise ConfigError(f"{option} {file}: {failure}") from failure


def _read(
    option: str,
    file: str | None,
    bootstrap: str | None,
    bootstrap_option: str,
    section: type[ClientSection],
    otherwise: Mapping[str, str],
) -> ClientOptions:
    options = dict(otherwise)
    if file is not None:
        try:
            options = read_properties(Path(file).read_text("utf-8"))
        except OSError as failure:
            raise ConfigError(f"{option} {file}: {failure.strerror or failure}") from failure
        except UnicodeDecodeError as failure:
            raise ConfigError(f"{option} {file}: not UTF-8") from failure
        with _named(option, file):  # an admin client keeps what it knows by its own name
            options = by_option(section, options)
    if bootstrap is not None:
        options["bootstrap.servers"] = bootstrap
    if not options.get("bootstrap.servers"):
        raise InvalidValueError(
            f"set {bootstrap_option} HOST:PORT, or bootstrap.servers in the {option} file"
        )
    return ClientOptions(options)

"""Options of the clients on both sides, from files of properties and from the command.

The files are those that Kafka's MirrorMaker takes: options of a consumer for the source, options
of a producer for the target. What would break the mirror's promises is set here, whatever a file
says; the rest of a file counts, and what it does not say is chosen for bulk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.config.properties import read_properties
from barnabas.model.errors import ConfigError, InvalidValueError

COMMON_DEFAULTS = {"bootstrap.timeout.ms": "5000", "client.id": "barnabas-mirror"}
CONSUMER_DEFAULTS = COMMON_DEFAULTS | {
    "isolation.level": "read_committed",
}
CONSUMER_SETTINGS = {
    "enable.auto.commit": "false",  # positions are the mirror's own
    "auto.offset.reset": "none",  # a position outside of the log is looked at, not replaced
    "allow.auto.create.topics": "false",
}
PRODUCER_DEFAULTS = COMMON_DEFAULTS | {
    "batch.size": "262144",
    "buffer.memory": "67108864",
    "max.request.size": "67108864",  # the topic's own limit decides
    "compression.type": "lz4",  # stamps of neighbours are much alike
    "max.block.ms": "30000",
}
PRODUCER_SETTINGS = {"enable.idempotence": "true", "acks": "all"}

READ_HERE = ("group.id", "auto.offset.reset")
OBJECTS = (
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
"""What a file may say and a mirror, which copies bytes to the same partitions, does not need."""


@dataclass(frozen=True, slots=True)
class Side:
    """The options of one cluster's clients, by Kafka's names."""

    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def admin(self) -> dict[str, Any]:
        """Return those of an admin client."""
        known = AdminOptions.options
        own = {name: value for name, value in self.options.items() if name in known}
        return COMMON_DEFAULTS | own

    @property
    def consumer(self) -> dict[str, Any]:
        """Return those of a consumer without a group."""
        left_out = (*READ_HERE, *OBJECTS)
        own = {name: value for name, value in self.options.items() if name not in left_out}
        return CONSUMER_DEFAULTS | own | CONSUMER_SETTINGS

    def producer(self, transactional_id: str) -> dict[str, Any]:
        """Return those of a transactional producer."""
        own = {name: value for name, value in self.options.items() if name not in OBJECTS}
        return PRODUCER_DEFAULTS | own | PRODUCER_SETTINGS | {"transactional.id": transactional_id}

    @property
    def reader(self) -> dict[str, Any]:
        """Return those of a consumer on a side whose options are a producer's."""
        return CONSUMER_DEFAULTS | self.admin | CONSUMER_SETTINGS


def read_source(file: str | None, bootstrap: str | None) -> Side:
    """Read the options of the source; an address on the command line replaces the file's."""
    side = _read("--consumer.config", file, bootstrap, "--source")
    parse_client_options(ConsumerOptions, side.consumer)  # a wrong one is told before any work
    return side


def read_target(file: str | None, bootstrap: str | None) -> Side:
    """Read the options of the target; an address on the command line replaces the file's."""
    side = _read("--producer.config", file, bootstrap, "--target")
    parse_client_options(ProducerOptions, side.producer("checked"))
    return side


def _read(option: str, file: str | None, bootstrap: str | None, bootstrap_option: str) -> Side:
    options: dict[str, str] = {}
    if file is not None:
        try:
            options = read_properties(Path(file).read_text(encoding="utf-8"))
        except OSError as failure:
            raise ConfigError(f"{option} {file}: {failure.strerror or failure}") from failure
        except UnicodeDecodeError as failure:
            raise ConfigError(f"{option} {file}: not a text in UTF-8") from failure
    if bootstrap is not None:
        options["bootstrap.servers"] = bootstrap
    if not options.get("bootstrap.servers"):
        raise InvalidValueError(
            f"{bootstrap_option} HOST:PORT is needed, or bootstrap.servers in the file of {option}"
        )
    return Side(options)

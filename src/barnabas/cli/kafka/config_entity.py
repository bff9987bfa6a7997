"""What `kafka-configs` is about: types of entities, their names, and changes of their options."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.errors import InvalidValueError

TOPICS, CLIENTS, USERS, BROKERS = "topics", "clients", "users", "brokers"
BROKER_LOGGERS, IPS, CLIENT_METRICS, GROUPS = "broker-loggers", "ips", "client-metrics", "groups"
TYPES = (TOPICS, CLIENTS, USERS, BROKERS, BROKER_LOGGERS, IPS, CLIENT_METRICS, GROUPS)


class Entity(NamedTuple):
    """A type with a name."""

    type: str
    name: str | None
    """None: not given, that is, all; empty: the default of the type."""


class Changes(NamedTuple):
    """Options to set, and options to reset."""

    added: dict[str, str]
    removed: list[str]


class InvalidConfig(InvalidValueError):
    """Options that do not exist, or not for this entity."""


def check_removed(changes: Changes, present: object) -> None:
    """Raise if an option is to be reset that is not set, as Kafka's tool does."""
    assert hasattr(present, "__contains__")
    unknown = [name for name in changes.removed if name not in present]
    if unknown:
        raise InvalidConfig(f"Invalid config(s): {','.join(unknown)}")

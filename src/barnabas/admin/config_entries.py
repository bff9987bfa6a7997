"""Enumerations of configs: their resources, the sources of values, and kinds of changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.numbered import member_of
from barnabas.client.cluster_client import ANY, Destination
from barnabas.model.errors import InvalidValueError


class ConfigResourceType(IntEnum):
    """The type of the resource that an option belongs to."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of an option's value."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def of(cls, number: int, *, is_default: bool = False) -> ConfigSource:
        """Read a source from the wire; versions that know only whether it is a default send -1."""
        if number == -1 and is_default:
            return cls.DEFAULT
        return member_of(cls, number)


class ConfigType(IntEnum):
    """The type of an option's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOp(IntEnum):
    """The change of an option."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource of options; a broker resource with an empty name is the whole cluster."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name!r}" if self.name else f"all {kind}s"

    @property
    def destination(self) -> Destination:
        """Return the destination of requests: a broker knows only its own options."""
        if self.type not in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
            return ANY
        if not self.name:
            return ANY
        if not self.name.isdecimal():
            raise InvalidValueError(f"{self}: must be a broker id, a whole number")
        return int(self.name)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One option; `value` is None when it is secret."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...]
    documentation: str | None
    type: ConfigType = ConfigType.UNKNOWN


@dataclass(frozen=True, slots=True)
class Change:
    """One change to one option; `value` is None for DELETE."""

    operation: AlterConfigOp
    name: str
    value: str | None = None

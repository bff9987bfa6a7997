"""Resources with options, the options, and where their values come from."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from enum import Enum

from barnabas.admin import config_entries as ours
from barnabas.admin.config_entries import Change
from barnabas.compat.confluent_kafka.admin.acls import ResourceType
from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.compat.confluent_kafka.model import member


class AlterConfigOpType(Enum):
    """What becomes of an option."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(Enum):
    """The source of an option's value."""

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class ConfigEntry:
    """An option with its value; to alter it, with an operation."""

    def __init__(
        self,
        name: str,
        value: str | None,
        source: ConfigSource | int = ConfigSource.UNKNOWN_CONFIG,
        is_read_only: bool = False,
        is_default: bool = False,
        is_sensitive: bool = False,
        is_synonym: bool = False,
        synonyms: Mapping[str, ConfigEntry] | None = None,
        incremental_operation: AlterConfigOpType | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.is_read_only = bool(is_read_only)
        self.is_default = bool(is_default)
        self.is_sensitive = bool(is_sensitive)
        self.is_synonym = bool(is_synonym)
        self.synonyms = dict(synonyms or {})
        self.incremental_operation = incremental_operation

    def __repr__(self) -> str:
        return f'ConfigEntry({self.name}="{self.value}")'

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@functools.total_ordering
class ConfigResource:
    """A resource with options, and what is to be changed of them."""

    Type = ResourceType

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: Mapping[str, str] | None = None,
        described_configs: Mapping[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: Iterable[ConfigEntry] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("Expected resource name to be a string")
        self.restype = member(ResourceType, restype)
        self.restype_int = int(self.restype.value)
        self.name = name
        self.set_config_dict: dict[str, str] = dict(set_config or {})
        self.incremental_configs = list(incremental_configs or [])
        self.configs = described_configs
        self.error = error

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Set an option, for `alter_configs`."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Add a change, for `incremental_alter_configs`."""
        self.incremental_configs.append(config_entry)

    @property
    def ours(self) -> ours.Resource:
        """The resource as our admin client takes it."""
        kinds = {
            ResourceType.TOPIC: ours.ConfigResourceType.TOPIC,
            ResourceType.BROKER: ours.ConfigResourceType.BROKER,
            ResourceType.GROUP: ours.ConfigResourceType.GROUP,
        }
        kind = kinds.get(self.restype)
        if kind is None:
            raise ValueError(f"{self.restype}: must be TOPIC, BROKER or GROUP")
        return ours.Resource(kind, self.name)

    @property
    def changes(self) -> list[Change]:
        """The changes as our admin client takes them."""
        made = []
        for entry in self.incremental_configs:
            if not isinstance(entry.incremental_operation, AlterConfigOpType):
                raise TypeError(f"{entry.name}: incremental_operation must be an AlterConfigOpType")
            operation = ours.AlterConfigOp(entry.incremental_operation.value)
            value = None if operation is ours.AlterConfigOp.DELETE else entry.value
            made.append(Change(operation, entry.name, value))
        return made

    def __repr__(self) -> str:
        error = "" if self.error is None else f",{self.error!r}"
        return f"ConfigResource({self.restype},{self.name}{error})"

    def __hash__(self) -> int:
        return hash((self.restype, self.name))

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype.value, self.name) < (other.restype.value, other.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return self.restype == other.restype and self.name == other.name

    def __len__(self) -> int:
        return len(self.set_config_dict)


def entries_of(found: Iterable[ours.ConfigEntry]) -> dict[str, ConfigEntry]:
    """Return options by name."""
    return {entry.name: _entry(entry) for entry in found}


def _entry(entry: ours.ConfigEntry) -> ConfigEntry:
    own = (entry.name, entry.value, entry.source)
    return ConfigEntry(
        entry.name,
        entry.value,
        _source(entry.source),
        entry.read_only,
        entry.source is ours.ConfigSource.DEFAULT,
        entry.sensitive,
        synonyms={
            name: ConfigEntry(
                name,
                value,
                _source(source),
                is_default=source is ours.ConfigSource.DEFAULT,
                is_synonym=True,
            )
            for name, value, source in entry.synonyms
            if (name, value, source) != own
        },
    )


def _source(source: ours.ConfigSource) -> int:
    """Return the number of a source, which programs make a ConfigSource of."""
    known = {each.value for each in ConfigSource}
    return int(source) if int(source) in known else 0

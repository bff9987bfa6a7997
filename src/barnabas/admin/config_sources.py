"""Configs as users of kafka-python name them: resources, sources of values, filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from barnabas.admin.config_entries import ConfigResourceType, Resource
from barnabas.admin.numbered import chosen

Options = Mapping[str, Any] | Sequence[str] | None


class ConfigSourceType(IntEnum):
    """The source of an option's value, under the names of the protocol."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    def is_modified(self) -> bool:
        """Return whether a value was set for the resource itself."""
        return self not in (
            ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG,
            ConfigSourceType.STATIC_BROKER_CONFIG,
            ConfigSourceType.DEFAULT_CONFIG,
        )


class ConfigFilterType(IntEnum):
    """Which options `describe_configs` returns."""

    ALL = 0
    DYNAMIC = 1
    MODIFIED = 2
    DEFAULT = 3
    STATIC = 4


class ConfigResource:
    """A resource with options: which to show, or how to change them.

    ConfigResource("topic", "orders")                                  # all options
    ConfigResource("topic", "orders", ["retention.ms"])                # to show or reset one
    ConfigResource("topic", "orders", {"retention.ms": "60000"})       # to set one
    ConfigResource("topic", "orders", {"cleanup.policy": ("APPEND", "compact")})
    """

    def __init__(
        self, resource_type: ConfigResourceType | str | int, name: object, configs: Options = None
    ) -> None:
        self.resource_type = chosen(ConfigResourceType, resource_type)
        self.name = str(name)
        self.configs = configs

    @property
    def resource(self) -> Resource:
        """Return the resource of the options."""
        return Resource(self.resource_type, self.name)

    def __repr__(self) -> str:
        return f"ConfigResource({self.resource_type!r}, {self.name!r}, {self.configs!r})"

"""A group of either protocol, and all groups of a coordinator by name."""

from __future__ import annotations

from typing import TypeAlias

from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer_group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup

Groups: TypeAlias = dict[str, Group]
"""The parts of a coordinator share one such table and see each other's changes."""

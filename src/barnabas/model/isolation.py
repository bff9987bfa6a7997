"""Isolation levels: by name, and by number on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""On the wire."""


class IsolationLevel(StrEnum):
    """The values of the option isolation.level."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"

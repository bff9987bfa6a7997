"""What a reader sees of transactions, by name."""

from __future__ import annotations

from enum import StrEnum


class IsolationLevel(StrEnum):
    """The values of the option isolation.level."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"

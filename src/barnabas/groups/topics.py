"""The cluster's topics, as groups look them up: by name, and by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from barnabas.model.ids import Uuid


class Topics(Protocol):
    """The existing topics, with their ids and partition counts."""

    def __contains__(self, name: object) -> bool:
        """Return whether a topic exists."""

    def __getitem__(self, name: str) -> tuple[Uuid, int]:
        """Return the id and the partition count of a topic."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all topics."""

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic id, None if it is unknown."""

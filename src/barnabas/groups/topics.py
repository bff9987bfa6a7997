"""The cluster's topics, as groups ask for them: by name, and by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from barnabas.model.ids import Uuid


class Topics(Protocol):
    """The topics that there are now; of each its id and its number of partitions."""

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a topic of this name."""

    def __getitem__(self, name: str) -> tuple[Uuid, int]:
        """Return the id of a topic and how many partitions it has."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all topics."""

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name behind an id, None if nobody has it."""

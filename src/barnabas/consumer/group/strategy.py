"""An assignor as a consumer uses it, whatever it was written for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.assignment.contract import Member, Share
from barnabas.client.metadata import ClientMetadata
from barnabas.model.ids import TopicPartition


class Strategy(Protocol):
    """An assignor as a consumer uses it, whatever it was written for."""

    @property
    def name(self) -> str:
        """Return the name under which members agree on it."""

    @property
    def is_cooperative(self) -> bool:
        """Tell whether members keep what they own while they rejoin."""

    def user_data(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int
    ) -> bytes | None:
        """Return what this member adds to its subscription."""

    def assign(self, cluster: ClientMetadata, members: Sequence[Member]) -> dict[str, Share]:
        """Decide for all members."""

    def on_assignment(self, share: Share, generation: int) -> None:
        """Take notice of what this member got."""

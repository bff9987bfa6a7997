"""Errors between a query and its topics, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """Offsets that a query should have read and that no longer exist."""

    partition: TopicPartition
    first: int
    until: int | None
    why: str

    def __str__(self) -> str:
        if self.until is None:
            return f"offsets from {self.first} on of {self.partition} ({self.why})"
        return f"offsets {self.first} to {self.until - 1} of {self.partition} ({self.why})"


class DataLossError(BarnabasError):
    """Records were deleted before they were read; `losses` lists them."""

    def __init__(self, losses: Iterable[LostOffsets]) -> None:
        self.losses = tuple(losses)
        super().__init__(
            f"data was lost: {'; '.join(map(str, self.losses))}. To continue without it, set "
            "failOnDataLoss=false"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return DataLossError, (self.losses,)  # tasks send their errors to the driver


class CheckpointError(BarnabasError):
    """A checkpoint that does not belong to these options, or that cannot be parsed."""


class StalledError(BarnabasError):
    """Records of a planned range do not arrive."""

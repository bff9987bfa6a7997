"""The states of a stream's iterator, as the consumer of the ZooKeeper era has them.

    NOT_READY --has_next--> READY --take--> NOT_READY
                        \\-> DONE      the stream has ended
                        \\-> FAILED    looking for the next item failed; every later call says so

A timeout leaves it NOT_READY: the iterator can be asked again. So does an interrupt (Ctrl-C),
which is no failure of the items.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, TypeVar

from barnabas.client.errors import ConsumerTimeout, IllegalStateError

Item = TypeVar("Item")


class IteratorState(Enum):
    """State of an iterator."""

    NOT_READY = auto()
    READY = auto()
    DONE = auto()
    FAILED = auto()


class Iteration(Generic[Item]):
    """Holds at most one item that was found and not taken yet."""

    def __init__(self, make_next: Callable[[], Item | None]) -> None:
        """`make_next` waits for an item; it returns None when there will be none."""
        self.state = IteratorState.NOT_READY
        self._make_next = make_next
        self._item: Item | None = None
        self._failure: Exception | None = None

    def has_next(self) -> bool:
        """Return whether there is an item, waiting for it if needed."""
        if self.state is IteratorState.FAILED:
            raise IllegalStateError(
                f"the iterator is in state FAILED: {self._failure}"
            ) from self._failure
        if self.state is IteratorState.NOT_READY:
            self._look()
        return self.state is IteratorState.READY

    def take(self) -> Item:
        """Return the item that `has_next` found, and become NOT_READY again."""
        item = self._item
        if self.state is not IteratorState.READY or item is None:
            raise IllegalStateError(f"no item to take in state {self.state.name}")
        self.reset()
        return item

    def reset(self) -> None:
        """Drop an item that was found; an end or a failure stays."""
        self._item = None
        if self.state is IteratorState.READY:
            self.state = IteratorState.NOT_READY

    def _look(self) -> None:
        try:
            self._item = self._make_next()
        except ConsumerTimeout:
            raise
        except Exception as failure:
            self.state, self._failure = IteratorState.FAILED, failure
            raise
        self.state = IteratorState.DONE if self._item is None else IteratorState.READY

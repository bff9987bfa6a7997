"""The states of a transaction and the transitions between them, as a table.

The numbers are those of the records in `__transaction_state`, the titles those of the protocol. No
other code decides on transitions: `Transaction.to` checks this table, so a transition that is not
listed cannot happen, and the diagram in the documentation is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class State(IntEnum):
    """The state of a transactional id."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7
    """Passed through on the way to PREPARE_ABORT when the coordinator itself aborts; never stored.
    """

    @property
    def title(self) -> str:
        """The name in the protocol."""
        return self.name.title().replace("_", "")

    @property
    def is_decided(self) -> bool:
        """Return whether the end is decided and its markers are being written."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Return whether no transaction is open."""
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


STEPS: Final[Mapping[State, tuple[State, ...]]] = MappingProxyType(
    {
        # From an idle state straight to an abort: a client of transaction version 2 may abort a
        # transaction that it never began, to have its epoch raised.
        State.EMPTY: (State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD),
        State.ONGOING: (
            State.ONGOING,
            State.PREPARE_COMMIT,
            State.PREPARE_ABORT,
            State.PREPARE_EPOCH_FENCE,
        ),
        State.PREPARE_COMMIT: (State.COMPLETE_COMMIT,),
        State.PREPARE_ABORT: (State.COMPLETE_ABORT,),
        State.COMPLETE_COMMIT: (State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD),
        State.COMPLETE_ABORT: (State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD),
        State.DEAD: (),
        State.PREPARE_EPOCH_FENCE: (State.PREPARE_ABORT,),
    }
)
"""The legal successors of each state."""


def state_titled(title: str) -> State | None:
    """Return the state with a title, None if there is none."""
    return next((state for state in State if state.title == title), None)

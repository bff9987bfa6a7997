"""What the controller is doing, in Kafka's words and numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class ControllerState(IntEnum):
    """The kind of event that the controller handles; the numbers are those of Kafka's gauge."""

    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    UNCLEAN_ELECTION_ENABLE = 13


class HasState(Protocol):
    """Knows what it is doing."""

    state: ControllerState


S = TypeVar("S", bound=HasState)
P = ParamSpec("P")
R = TypeVar("R")


def doing(
    state: ControllerState,
) -> Callable[
    [Callable[Concatenate[S, P], Awaitable[R]]], Callable[Concatenate[S, P], Awaitable[R]]
]:
    """Name the state in which an event is handled; what it calls itself does not change it.

    The host of the controller sets the state back to IDLE.
    """

    def named(
        handle: Callable[Concatenate[S, P], Awaitable[R]],
    ) -> Callable[Concatenate[S, P], Awaitable[R]]:
        @wraps(handle)
        def with_state(self: S, /, *arguments: P.args, **options: P.kwargs) -> Awaitable[R]:
            if self.state is ControllerState.IDLE:
                self.state = state
            return handle(self, *arguments, **options)

        return with_state

    return named

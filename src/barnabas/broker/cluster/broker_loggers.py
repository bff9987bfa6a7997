"""The levels of the broker's loggers, which clients read and set while it runs.

They belong to the process: brokers that share one share the levels, and none is stored. A logger
without a level of its own has that of its parent, and finally of `root`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable

from barnabas.config.alteration import Change, Operation
from barnabas.config.option import Kind
from barnabas.config.sources import Described, Source
from barnabas.logging.loggers import OWN_NAMES, ROOT
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

TRACE = 5
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}
"""Kafka's levels."""

DOC = "Level from which lines of this logger are written: " + ", ".join(LEVELS)


class BrokerLoggers:
    """The loggers by our names and by Kafka's, and their levels."""

    def __init__(self) -> None:
        self._on_change: list[Callable[[], None]] = []

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call a function after levels were set."""
        self._on_change.append(on_change)

    def describe(self, names: Collection[str] | None) -> list[Described]:
        """Describe the levels in effect: of all loggers, or of those of `names` that exist."""
        return [
            Described(
                name,
                _level_name(logging.getLogger(own).getEffectiveLevel()),
                Source.DYNAMIC_BROKER_LOGGER,
                Kind.OBJECT,  # Kafka says no type here
                read_only=False,
                sensitive=False,
                synonyms=(),
                doc=DOC,
            )
            for name, own in OWN_NAMES.items()
            if not names or name in names
        ]

    def alter(self, changes: Iterable[Change], *, dry_run: bool) -> None:
        """Set or reset levels; all, or none if one cannot be."""
        changes = list(changes)
        for change in changes:
            _check(change)
        if dry_run:
            return
        for change in changes:
            deleted = change.operation == Operation.DELETE
            level = logging.NOTSET if deleted else LEVELS[change.value or ""]
            logging.getLogger(OWN_NAMES[change.name]).setLevel(level)
        for notify in self._on_change:
            notify()


def _check(change: Change) -> None:
    """Raise what Kafka answers to a change that it rejects."""
    name, operation, level = change
    if operation not in (Operation.SET, Operation.DELETE):
        known = operation in (Operation.APPEND, Operation.SUBTRACT)
        shown = Operation(operation).name if known else f"Unknown operation type {operation}"
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{shown} operation is not allowed for the BROKER_LOGGER resource",
        )
    if name not in OWN_NAMES:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == Operation.SET and level not in LEVELS:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )
    if operation == Operation.DELETE and name == ROOT:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"Removing the log level of the {ROOT} logger is not allowed",
        )


def _level_name(level: int) -> str:
    """Return the strictest of Kafka's levels that lets the same lines pass."""
    return next((name for name, number in LEVELS.items() if number <= level), "TRACE")

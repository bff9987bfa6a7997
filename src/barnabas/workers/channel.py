"""What a supervisor and a worker say to each other, over a socket that the worker inherits.

A message is a JSON object in a line: first the worker's orders, then what it reports. The end of
the socket is the end of the process at its other end.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from barnabas.model.errors import ConfigError


@dataclass(frozen=True)
class Orders:
    """What a worker is to be: its number, its options, and the socket of its tree."""

    number: int
    values: Mapping[str, str]
    tree: str | None


@dataclass(frozen=True)
class Ready:
    """A worker serves: where, and where its metrics and its console are."""

    endpoints: list[str]
    ports: Mapping[str, int]
    metrics_port: int | None
    console: str | None


@dataclass(frozen=True)
class InSync:
    """All replicas of a worker are in sync."""


Report = Ready | InSync


def encode_orders(orders: Orders) -> bytes:
    """Return the line that gives a worker its orders."""
    return _line(asdict(orders))


def decode_orders(line: bytes) -> Orders:
    """Return the orders of a line; raise ConfigError if it has none."""
    try:
        return Orders(**json.loads(line))
    except (ValueError, TypeError) as failure:
        raise ConfigError("--worker: the supervisor ended before it sent any options") from failure


def encode_report(report: Report) -> bytes:
    """Return the line of a report."""
    return _line({type(report).__name__: asdict(report)})


def decode_report(line: bytes) -> Report:
    """Return the report of a line; raise ValueError if it has none."""
    match json.loads(line):
        case {"Ready": dict() as fields}:
            return Ready(**fields)
        case {"InSync": {}}:
            return InSync()
    raise ValueError(f"no report: {line[:100]!r}")


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def inherited(descriptor: int) -> socket.socket:
    """Return the socket that was inherited as a descriptor; no child of ours inherits it."""
    try:
        channel = socket.socket(fileno=descriptor)
    except OSError as failure:
        raise ConfigError(
            f"--worker {descriptor}: only a supervisor starts workers; use --workers N"
        ) from failure
    channel.set_inheritable(False)
    return channel

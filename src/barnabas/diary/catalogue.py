"""Every event that is noted, with the closed list of its causes.

A cause that is missing here is a bug, which the journal reports; a test shows where each of them
is exercised. Sentences are in `sentences`, the lines of logs in `log_lines`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

REBALANCE_CAUSES: Final = (
    "member-joined",
    "member-left",
    "member-rejoined",
    "session-timeout",
    "rebalance-timeout",
    "poll-interval",
    "subscription-changed",
    "topic-changed",
    "protocol-changed",
    "static-replaced",
    "coordinator-moved",
    "migration",
    "admin-removed",
)
"""Why the members of a group are assigned partitions again."""

STALL_CAUSES: Final = ("request", "task", "garbage-collection", "busy", "waiting")
"""What kept the event loop from its turns."""

STATE_CHANGE: Final = "barnabas.state_change"


@dataclass(frozen=True, slots=True)
class Event:
    """What can happen, and why."""

    name: str
    causes: tuple[str, ...]
    logger: str
    level: int = logging.INFO
    limited: bool = False
    """Whether clients can cause it at will: then a fold logs its first occurrence alone."""
    logged: bool = True
    """Whether the note is logged; otherwise the part that acts has a line of its own."""
    kept: bool = True
    """Whether it is an entry of the diary, not only a log line and a count."""
    routine: bool = False
    """Whether it belongs to every start: the diary's topic is not created for it."""


def _events(*events: Event) -> Mapping[str, Event]:
    return {event.name: event for event in events}


EVENTS: Final[Mapping[str, Event]] = _events(
    # groups
    Event("group.rebalance", REBALANCE_CAUSES, "barnabas.groups"),
    Event("group.stable", REBALANCE_CAUSES, "barnabas.groups"),
    Event("group.empty", REBALANCE_CAUSES, "barnabas.groups"),
    Event("group.deleted", ("client", "expired"), "barnabas.groups"),
    Event("offsets.expired", ("retention",), "barnabas.groups"),
    Event("offsets.reset", ("moved-back", "tool"), "barnabas.groups", limited=True),
    # replication
    Event(
        "isr.shrink",
        (
            "lag-time",
            "broker-gone",
            "restarted",
            "directory-failed",
            "reassigned",
            "controlled-shutdown",
        ),
        STATE_CHANGE,
    ),
    Event("isr.expand", ("caught-up",), STATE_CHANGE),
    Event(
        "isr.refused",
        (
            "ineligible-replica",
            "stale-leader-epoch",
            "stale-version",
            "unknown-partition",
            "invalid",
        ),
        STATE_CHANGE,
    ),
    Event(
        "leader.elected",
        (
            "first",
            "broker-gone",
            "preferred",
            "controlled-shutdown",
            "reassignment",
            "unclean",
            "directory-failed",
            "restarted",
            "replica-back",
        ),
        STATE_CHANGE,
        routine=True,
    ),
    Event(
        "partition.offline",
        ("broker-gone", "directory-failed", "restarted"),
        STATE_CHANGE,
    ),
    Event("role.leads", ("assigned",), STATE_CHANGE, kept=False),
    Event("role.follows", ("assigned",), STATE_CHANGE, kept=False),
    Event("role.stopped", ("assigned", "deleted"), STATE_CHANGE, kept=False),
    Event(
        "role.refused",
        ("stale-controller-epoch", "stale-broker-epoch"),
        STATE_CHANGE,
    ),
    Event("log.truncated", ("diverged", "out-of-range"), "barnabas.replication"),
    # clients
    Event(
        "throttle.begin",
        ("produce", "fetch", "request", "controller-mutation"),
        "barnabas.quotas",
        limited=True,
    ),
    Event(
        "throttle.end",
        ("produce", "fetch", "request", "controller-mutation"),
        "barnabas.quotas",
        limited=True,
    ),
    Event(
        "reject.produce",
        (
            "too-large",
            "not-enough-replicas",
            "no-key-compacted",
            "bad-timestamp",
            "corrupt",
            "invalid-record",
            "sequence",
            "fenced",
            "unknown-producer",
            "transaction-state",
            "storage",
        ),
        "barnabas.logs",
        limited=True,
    ),
    Event(
        "reject.authorization",
        ("denied", "no-rule"),
        "barnabas.authorizer",
        limited=True,
        logged=False,
    ),
    Event(
        "reject.connection",
        (
            "limit",
            "rate",
            "frame-size",
            "tls",
            "authentication",
            "unsupported-version",
            "idle",
        ),
        "barnabas.network",
        limited=True,
        logged=False,
    ),
    # storage
    Event("log.recovered", ("unclean-shutdown",), "barnabas.logs", logged=False, routine=True),
    Event("segment.deleted", ("time", "size", "start-offset"), "barnabas.retention", logged=False),
    Event("compaction.failed", ("storage", "damaged"), "barnabas.cleaner", logged=False),
    Event("directory.offline", ("disk-error",), "barnabas.logs", logged=False),
    Event("directory.full", ("no-room",), "barnabas.logs"),
    # the broker
    Event("controller.elected", ("elected",), "barnabas.controller", logged=False, routine=True),
    Event(
        "controller.resigned",
        ("session-lost", "overtaken", "stopped"),
        "barnabas.controller",
        logged=False,
        routine=True,
    ),
    Event("session.lost", ("expired",), "barnabas.coordination"),
    Event("session.back", ("renewed",), "barnabas.coordination", logged=False),
    Event(
        "loop.stall",
        STALL_CAUSES,
        "barnabas.broker",
        limited=True,
        routine=True,
    ),
    # transactions
    Event(
        "transaction.aborted",
        ("timeout", "fenced", "client"),
        "barnabas.transactions",
        limited=True,
    ),
    # changes on request
    Event("config.changed", ("client",), "barnabas.config"),
    Event("quota.changed", ("client",), "barnabas.config"),
    Event("acl.changed", ("client",), "barnabas.config"),
    Event(
        "topic.created", ("client", "automatic", "internal"), "barnabas.controller", routine=True
    ),
    Event("topic.deleted", ("client",), "barnabas.controller"),
)

"""Which entries are about a group, a partition, a topic, a broker or a client."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.diary import subjects
from barnabas.diary.entry import Entry

Concerns = Callable[[Entry], bool]

OF_COORDINATOR = ("leader.elected", "partition.offline")


def about_group(name: str, stored_in: str | None = None) -> Concerns:
    """Return what selects a group's entries.

    Those of a leader are included for the partition that stores the group, if its subject is given:
    that leader is the group's coordinator.
    """
    subject = subjects.group(name)
    return lambda entry: (
        entry.subject == subject or (entry.subject == stored_in and entry.event in OF_COORDINATOR)
    )


def about_partition(topic: str, number: int) -> Concerns:
    """Return what selects a partition's entries."""
    subject = subjects.partition(topic, number)
    return lambda entry: entry.subject == subject or entry.data.get("partition") == subject


def about_topic(name: str) -> Concerns:
    """Return what selects the entries of a topic and of its partitions."""
    own = subjects.topic(name)
    return lambda entry: (
        entry.subject == own
        or _topic_of(entry.subject) == name
        or _topic_of(str(entry.data.get("partition", ""))) == name
    )


def about_broker(number: int) -> Concerns:
    """Return what selects the entries of a broker, or of what happened because of it."""
    subject = subjects.broker(number)

    def concerns(entry: Entry) -> bool:
        return (
            entry.subject == subject
            or any(entry.data.get(name) == number for name in ("leader", "previous"))
            or number in entry.data.get("removed", ())
            or any(
                isinstance(each, dict) and each.get("id") == number
                for each in entry.data.get("replicas", ())
            )
        )

    return concerns


def about_client(name: str) -> Concerns:
    """Return what selects the entries of clients of a host, an id or a principal."""
    return lambda entry: entry.concerns(name)


def _topic_of(partition: str) -> str | None:
    topic, _, number = partition.rpartition("-")
    return topic if number.isdecimal() and ":" not in topic else None

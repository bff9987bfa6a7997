"""What is wrong, in sentences: what, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from barnabas.console.rendering import duration, visible
from barnabas.console.segments import segment
from barnabas.console.window import Directory, Health, Sample

NAMED_MAX = 3
DISK_LOW, DISK_FULL = 0.15, 0.05
LAG_MS_MAX = 250.0
BUSY_MAX = 0.85
RECENT = 12
"""Samples, of five seconds each, that an average is made of."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about the cluster, with its reason and advice."""

    level: str
    """`bad`, `warn` or `good`."""
    text: str
    advice: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class TopicTotals:
    """What a visitor may see of all topics, added up."""

    topics: int
    partitions: int
    offline: int
    offline_in: Sequence[str]
    """Names of topics, at most a few."""
    under_replicated: int
    under_replicated_in: Sequence[str]


def findings(
    totals: TopicTotals,
    health: Health,
    directories: Collection[Directory],
    history: Sequence[Sample],
    behind: Sequence[tuple[str, float]] = (),
) -> list[Finding]:
    """Return what is wrong, the worst first; one good sentence if nothing is."""
    found: list[Finding] = []
    if health.silent:
        found.append(
            Finding(
                "bad",
                "This broker has lost its cluster, and serves none of its partitions.",
                "Look whether the coordination service (ZooKeeper) can be reached from here. The "
                "broker continues by itself when it has its session back.",
            )
        )
    if health.controller_id < 0:
        found.append(
            Finding(
                "bad",
                "The cluster has no controller.",
                "Leaders are not elected and topics not created until there is one. Look at the "
                "logs of the brokers for 'controller'.",
                "/brokers",
            )
        )
    if totals.offline:
        found.append(
            Finding(
                "bad",
                f"{_count(totals.offline, 'partition')} without a leader, in "
                f"{_named(totals.offline_in)}.",
                "None of their in-sync replicas is alive. Start the brokers that have them. If "
                "their data is lost for good, an unclean election trades lost records for service.",
                "/elections",
            )
        )
    if totals.under_replicated:
        found.append(
            Finding(
                "warn",
                f"{_count(totals.under_replicated, 'partition')} with fewer in-sync replicas than "
                f"replicas, in {_named(totals.under_replicated_in)}.",
                "A broker is down or cannot keep up. While it lasts, fewer failures can be "
                "survived.",
                "/topics?sort=-under_replicated",
            )
        )
    if health.under_min_isr_count:
        found.append(
            Finding(
                "bad",
                f"{_count(health.under_min_isr_count, 'partition')} led by this broker with fewer "
                "in-sync replicas than min.insync.replicas.",
                "Producers with acks=all are rejected there. Start the brokers of the missing "
                "replicas, or see why they are not in sync.",
                "/topics?sort=-under_replicated",
            )
        )
    found += _of_directories(directories)
    found += _of_load(history)
    found += _of_groups(behind)
    if not found:
        found.append(
            Finding(
                "good",
                f"Nothing is wrong: {_count(totals.partitions, 'partition')} of "
                f"{_count(totals.topics, 'topic')}, all with a leader and all replicas in sync.",
            )
        )
    return sorted(found, key=lambda each: ("bad", "warn", "good").index(each.level))


def _of_directories(directories: Collection[Directory]) -> list[Finding]:
    found = []
    for each in directories:
        if not each.online:
            found.append(
                Finding(
                    "bad",
                    f"Data directory {each.path} is offline.",
                    "Its disk failed. Replace it and restart the broker; replicas elsewhere serve "
                    "meanwhile.",
                    "/brokers",
                )
            )
        elif each.total_bytes and each.free_bytes / each.total_bytes < DISK_LOW:
            share = each.free_bytes / each.total_bytes
            found.append(
                Finding(
                    "bad" if share < DISK_FULL else "warn",
                    f"The disk of {each.path} has {share:.0%} free.",
                    "Shorten retention (retention.ms, retention.bytes), move partitions to another "
                    "broker, or add space.",
                    "/brokers",
                )
            )
    return found


def _of_groups(behind: Sequence[tuple[str, float]]) -> list[Finding]:
    if not behind:
        return []
    worst = ", ".join(
        f"{visible(name)} ({duration(seconds * 1000)})" for name, seconds in behind[:NAMED_MAX]
    )
    more = f" and {len(behind) - NAMED_MAX} more" if len(behind) > NAMED_MAX else ""
    return [
        Finding(
            "warn",
            f"{_count(len(behind), 'group')} far behind: {worst}{more}.",
            "See whether the members are alive and whether the lag falls. More members read more "
            "partitions at a time.",
            f"/groups/{segment(behind[0][0])}" if len(behind) == 1 else "/groups",
        )
    ]


def _of_load(history: Sequence[Sample]) -> list[Finding]:
    recent = history[-RECENT:]
    found = []
    slow = max((each.loop_lag_ms for each in recent), default=0.0)
    if slow > LAG_MS_MAX:
        found.append(
            Finding(
                "warn",
                f"This broker's event loop stood still for {slow:.0f} ms in the last minute.",
                "Every client waited that long. A slow disk or very large requests are the usual "
                "causes.",
            )
        )
    busy = sum(each.busy for each in recent) / len(recent) if recent else 0.0
    if busy > BUSY_MAX:
        found.append(
            Finding(
                "warn",
                f"This broker's event loop was busy {busy:.0%} of the last minute.",
                "It is near its limit: spread leaders over more brokers, or let clients send "
                "larger batches.",
            )
        )
    return found


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED_MAX])
    more = len(names) - NAMED_MAX
    return f"{shown} and {_count(more, 'more topic')}" if more > 0 else shown

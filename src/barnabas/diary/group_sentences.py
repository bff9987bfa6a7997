"""What entries about groups say in plain words; see `sentences`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.diary.wording import Data, by, counted, listed, span


def _member(data: Data) -> str:
    text = f"member {data['member']}" if data.get("member") else "a member"
    return f"{text} ({data['host']})" if data.get("host") else text


def _said(data: Data) -> str:
    return f'; it said: "{data["said"]}"' if data.get("said") else ""


_MISSED: Final = {
    "join": "did not rejoin",
    "sync": "did not ask for its assignment",
    "revoke": "did not give up its partitions",
}


def _rebalance_reason(cause: str, data: Data) -> str:
    match cause:
        case "member-joined":
            return f"{_member(data)} joined{_said(data)}"
        case "member-left":
            return f"{_member(data)} left{_said(data)}"
        case "poll-interval":
            return (
                f"{_member(data)} left because its program took longer than max.poll.interval.ms "
                f"between two polls{_said(data)}"
            )
        case "admin-removed":
            return f"{_member(data)} was removed by a tool{_said(data)}"
        case "session-timeout":
            if "silent_ms" not in data:
                return f"{_member(data)} did not complete its first join"
            return (
                f"{_member(data)} sent no heartbeat for {span(data['silent_ms'])} "
                f"(session timeout {span(data['timeout_ms'])})"
            )
        case "rebalance-timeout":
            missed = _MISSED.get(data.get("step", "join"), "was too slow")
            return (
                f"{listed(data['missing'])} {missed} within {span(data['timeout_ms'])} "
                "(rebalance timeout)"
            )
        case "subscription-changed":
            return (
                f"{_member(data)} changed its subscription from {listed(data['topics_before'])} "
                f"to {listed(data['topics_after'])}"
            )
        case "topic-changed":
            changes = [
                f"{topic} has {after} partitions, not {before}"
                for topic, (before, after) in data["changes"].items()
            ]
            return "the subscribed topics changed: " + ("; ".join(changes) or "recreated")
        case "protocol-changed":
            return (
                f"{_member(data)} changed its assignors from {listed(data['protocols_before'])} "
                f"to {listed(data['protocols_after'])}"
            )
        case "member-rejoined":
            leads = ", the leader," if data.get("leader") else ""
            return f"{_member(data)}{leads} joined again with the same subscription{_said(data)}"
        case "static-replaced":
            return f"instance {data['instance']} restarted and was given a new member id"
        case "migration":
            return f"it became a {data['to']} group"
        case "coordinator-moved":
            return (
                f"the group has {data['size']} members, and its coordinator now allows "
                f"{data['limit']} (group.max.size)"
            )
    return cause


def _rebalance(cause: str, data: Data) -> str:
    return f"rebalance began in generation {data['generation']}: {_rebalance_reason(cause, data)}"


_WHAT_BEGAN: Final = {
    "session-timeout": "a session timeout",
    "rebalance-timeout": "a rebalance timeout",
    "poll-interval": "a slow program",
    "member-joined": "a new member",
    "member-left": "a member that left",
    "member-rejoined": "a member that joined again",
    "admin-removed": "a tool that removed a member",
    "subscription-changed": "a changed subscription",
    "topic-changed": "changed topics",
    "protocol-changed": "changed assignors",
    "static-replaced": "a restarted static member",
    "migration": "a change of protocol",
    "coordinator-moved": "a smaller group.max.size",
}


def _round(data: Data) -> str:
    parts = []
    for word in ("joined", "left"):
        if data.get(word):
            parts.append(f"{word}: {listed(data[word])}")
    if data.get("timed_out"):
        parts.append(f"timed out: {listed(data['timed_out'])}")
    return "".join(f"; {part}" for part in parts)


def _stable(cause: str, data: Data) -> str:
    steps = ""
    if data["assigning_ms"]:
        steps = (
            f" (members rejoined in {span(data['joining_ms'])}, assigned in "
            f"{span(data['assigning_ms'])})"
        )
    return (
        f"stable in generation {data['generation']} after {span(data['took_ms'])}{steps}, with "
        f"{counted(data['after'], 'member')} instead of {data['before']}; begun by "
        f"{_WHAT_BEGAN.get(cause, cause)}{_round(data)}"
    )


def _empty(cause: str, data: Data) -> str:
    return (
        f"empty since generation {data['generation']}, by {_WHAT_BEGAN.get(cause, cause)}"
        f"{_round(data)}"
    )


def _group_deleted(cause: str, data: Data) -> str:
    if cause == "expired":
        return "deleted: it had no members, and its last offsets expired"
    return f"deleted with {counted(data['offsets'], 'offset')} by {by(data)}"


def _offsets_expired(cause: str, data: Data) -> str:
    count = counted(data["offsets"], "offset")
    return f"{count} expired after {span(data['retention_ms'])} (offsets.retention.minutes)"


def _offsets_reset(cause: str, data: Data) -> str:
    moves = [
        f"{partition} from {before} to {after}"
        for partition, (before, after) in data["moves"].items()
    ]
    more = data.get("partitions", len(moves)) - len(moves)
    rest = f" and {more} more" if more > 0 else ""
    return f"offsets set by {by(data)}, without members: {', '.join(moves)}{rest}"


GROUP_SENTENCES: Final[Mapping[str, Callable[[str, Data], str]]] = {
    "group.rebalance": _rebalance,
    "group.stable": _stable,
    "group.empty": _empty,
    "group.deleted": _group_deleted,
    "offsets.expired": _offsets_expired,
    "offsets.reset": _offsets_reset,
}

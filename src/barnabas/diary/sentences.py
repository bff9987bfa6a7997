"""What an entry says in plain words: made from its data when it is read, never stored.

A sentence leaves out the subject, which its reader has in front of it. Data that an older broker
did not record is left out, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

Data = Mapping[str, Any]

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def sentence(event: str, cause: str, data: Data) -> str:
    """Return an entry in words; one of an unknown event as it stands."""
    say = _SENTENCES.get(event)
    if say is None:
        return _plain(event, cause, data)
    try:
        return say(cause, data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return _plain(event, cause, data)  # written by a version with other data


def span(milliseconds: float) -> str:
    """Return a duration with the unit that fits."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1000:.1f} s"
    if milliseconds < 7_200_000:
        return f"{milliseconds / 60_000:.0f} min"
    if milliseconds < 172_800_000:
        return f"{milliseconds / 3_600_000:.1f} h"
    return f"{milliseconds / 86_400_000:.1f} days"


def size(count: float) -> str:
    """Return a number of bytes with the unit that fits."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


def moment(milliseconds: int) -> str:
    """Return a time of day with its date, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _plain(event: str, cause: str, data: Data) -> str:
    numbers = ", ".join(f"{name}={value}" for name, value in data.items())
    return f"{event}: {cause}" + (f" ({numbers})" if numbers else "")


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) or "none"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _member(data: Data) -> str:
    text = f"member {data['member']}" if data.get("member") else "a member"
    return f"{text} ({data['host']})" if data.get("host") else text


def _said(data: Data) -> str:
    return f'; it said: "{data["said"]}"' if data.get("said") else ""


# -- groups


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
                f"{_listed(data['missing'])} {missed} within {span(data['timeout_ms'])} "
                "(rebalance timeout)"
            )
        case "subscription-changed":
            return (
                f"{_member(data)} changed its subscription from {_listed(data['topics_before'])} "
                f"to {_listed(data['topics_after'])}"
            )
        case "topic-changed":
            changes = [
                f"{topic} has {after} partitions, not {before}"
                for topic, (before, after) in data["changes"].items()
            ]
            return "the subscribed topics changed: " + ("; ".join(changes) or "recreated")
        case "protocol-changed":
            return (
                f"{_member(data)} changed its assignors from {_listed(data['protocols_before'])} "
                f"to {_listed(data['protocols_after'])}"
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
            parts.append(f"{word}: {_listed(data[word])}")
    if data.get("timed_out"):
        parts.append(f"timed out: {_listed(data['timed_out'])}")
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
        f"{_counted(data['after'], 'member')} instead of {data['before']}; begun by "
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
    return f"deleted with {_counted(data['offsets'], 'offset')} by {_by(data)}"


def _offsets_expired(cause: str, data: Data) -> str:
    count = _counted(data["offsets"], "offset")
    return f"{count} expired after {span(data['retention_ms'])} (offsets.retention.minutes)"


def _offsets_reset(cause: str, data: Data) -> str:
    moves = [
        f"{partition} from {before} to {after}"
        for partition, (before, after) in data["moves"].items()
    ]
    more = data.get("partitions", len(moves)) - len(moves)
    rest = f" and {more} more" if more > 0 else ""
    return f"offsets set by {_by(data)}, without members: {', '.join(moves)}{rest}"


# -- replication


def _isr(data: Data) -> str:
    return f"ISR {_listed(data['from'])} → {_listed(data['to'])}"


def _isr_shrink(cause: str, data: Data) -> str:
    match cause:
        case "lag-time":
            return f"{_isr(data)}: " + "; ".join(_lagging(each, data) for each in data["replicas"])
        case "broker-gone":
            why = "is gone"
        case "restarted":
            why = "restarted, and may have lost what it had not flushed"
        case "directory-failed":
            why = "cannot serve the replica: its disk failed or is full"
        case "reassigned":
            why = "is no longer assigned"
        case _:
            why = "is shutting down"
    return f"{_isr(data)}: broker {_listed(data['removed'])} {why}"


def _lagging(replica: Data, data: Data) -> str:
    text = f"broker {replica['id']} "
    if replica["caught_up_ms_ago"] >= 0:
        text += f"last had everything {span(replica['caught_up_ms_ago'])} ago"
    else:
        text += "has not caught up in this leader's term"
    if replica["behind"] >= 0:
        text += f" and is {_counted(replica['behind'], 'record')} behind"
    if "lag_ms_max" in data:
        text += f" (replica.lag.time.max.ms {span(data['lag_ms_max'])})"
    return text


def _isr_expand(cause: str, data: Data) -> str:
    added = [each for each in data["to"] if each not in data["from"]]
    return f"{_isr(data)}: broker {_listed(added)} caught up"


def _isr_refused(cause: str, data: Data) -> str:
    return (
        f"the controller rejected {_isr(data)} with {data['code']}: leader epoch "
        f"{data['leader_epoch']}, version {data['version']}"
    )


def _elected(cause: str, data: Data) -> str:
    leader, previous, epoch = data["leader"], data["previous"], data["leader_epoch"]
    begin = f"broker {leader} leads in epoch {epoch}"
    match cause:
        case "first":
            return f"{begin}: the partition is new, ISR {_listed(data['isr'])}"
        case "broker-gone":
            why = f"broker {previous} is gone"
        case "preferred":
            why = f"it is the preferred replica; before: broker {previous}"
        case "controlled-shutdown":
            why = f"broker {previous} is shutting down"
        case "reassignment":
            why = f"of a reassignment; before: broker {previous}"
        case "unclean":
            why = (
                "an unclean election: no in-sync replica "
                f"({_listed(data['isr_before'])}) was alive, records may be lost"
            )
        case "directory-failed":
            why = f"broker {previous} cannot serve it: its disk failed or is full"
        case "restarted":
            why = f"broker {previous} restarted, and may have lost what it had not flushed"
        case _:
            why = "it was in sync when the partition lost its leader, and is back"
    return f"{begin}, because {why}; ISR {_listed(data['isr'])}"


def _offline(cause: str, data: Data) -> str:
    text = f"no leader: none of the in-sync replicas {_listed(data['isr'])} can lead"
    if data["dead"]:
        text += f"; not alive: {_listed(data['dead'])}"
    if data["failed"]:
        text += f"; with a failed disk: {_listed(data['failed'])}"
    out_of_sync = [each for each in data["replicas"] if each not in data["isr"]]
    if out_of_sync:
        text += f"; out of sync: {_listed(out_of_sync)} (an unclean election could elect them)"
    return text


def _truncated(cause: str, data: Data) -> str:
    why = "it differed from the leader's log"
    if cause == "out-of-range":
        why = "the leader no longer has what follows"
    return (
        f"broker {data['broker']} truncated its log from offset {data['from']} to {data['to']}: "
        f"{why} (leader {data['leader']}, epoch {data['leader_epoch']})"
    )


# -- clients


def _by(data: Data) -> str:
    who = data.get("principal") or data.get("client_id") or "a client"
    return f"{who} at {data['host']}" if data.get("host") else str(who)


_QUOTAS: Final = {
    "produce": "producer_byte_rate",
    "fetch": "consumer_byte_rate",
    "request": "request_percentage",
    "controller-mutation": "controller_mutation_rate",
}


def _amount(cause: str, number: float) -> str:
    if cause in ("produce", "fetch"):
        return f"{size(number)}/s"
    return f"{number:.1f} %" if cause == "request" else f"{number:.1f} partitions/s"


def _throttle_begin(cause: str, data: Data) -> str:
    return (
        f"throttled by {_QUOTAS[cause]} of {data['entity']}: used {_amount(cause, data['rate'])}, "
        f"limit {_amount(cause, data['limit'])}; its connection is not read for "
        f"{span(data['delay_ms'])}"
    )


def _throttle_end(cause: str, data: Data) -> str:
    return (
        f"no longer throttled by {_QUOTAS[cause]} of {data['entity']}, after "
        f"{span(data['took_ms'])}: {_counted(data['throttles'], 'pause')}, the longest "
        f"{span(data['longest_ms'])}"
    )


def _reject_produce(cause: str, data: Data) -> str:
    head = f"records for {data['partition']} were rejected with {data['code']}"
    match cause:
        case "too-large":
            why = f"too large for max.message.bytes={data['limit']}" if "limit" in data else ""
        case "not-enough-replicas":
            why = (
                f"{_counted(data['isr'], 'in-sync replica')}, min.insync.replicas={data['min_isr']}"
            )
        case _:
            why = ""
    reason = data.get("reason") or why
    if why and reason != why:
        reason = f"{reason} ({why})"
    return f"{head}: {reason}" if reason else head


def _denied(cause: str, data: Data) -> str:
    rule = f"by {data['rule']}" if cause == "denied" else f"{data['rule']}"
    return (
        f"{data['principal']} at {data['host']} was denied {data['operation']} on "
        f"{data['resource']} ({data['api']}): {rule}"
    )


_CONNECTIONS: Final = {
    "limit": "too many connections",
    "rate": "connections come too fast",
    "frame-size": "a frame is too large",
    "tls": "the TLS handshake failed",
    "authentication": "the login failed",
    "unsupported-version": "the version is not supported",
    "idle": "idle for too long",
}


def _reject_connection(cause: str, data: Data) -> str:
    reason = data.get("reason", "")
    text = f"connection on {data['listener']} closed: {_CONNECTIONS[cause]}"
    return f"{text}: {reason}" if reason else text


# -- storage


def _recovered(cause: str, data: Data) -> str:
    return (
        f"{_counted(data['logs'], 'log')} recovered in {span(data['took_ms'])} after an unclean "
        "shutdown"
    )


_RULES: Final = {
    "time": "their newest records were older than retention.ms",
    "size": "the log was larger than retention.bytes",
    "start-offset": "they lay below the log start offset",
}


def _segment_deleted(cause: str, data: Data) -> str:
    text = (
        f"broker {data['broker']} deleted {_counted(data['segments'], 'segment')} "
        f"({size(data['bytes'])}) below offset {data['offset']}, because {_RULES[cause]}"
    )
    if cause == "time" and "retention_ms" in data:
        text += f" ({span(data['retention_ms'])})"
    if cause == "size" and "retention_bytes" in data:
        text += f" ({size(data['retention_bytes'])})"
    return text


def _compaction_failed(cause: str, data: Data) -> str:
    return (
        f"broker {data['broker']} no longer compacts it until it restarts: compaction failed: "
        f"{data['reason']}"
    )


def _directory(cause: str, data: Data) -> str:
    return (
        f"log directory {data['directory']} is offline with "
        f"{_counted(data['partitions'], 'partition')}: {data['reason']}"
    )


def _full(cause: str, data: Data) -> str:
    return (
        f"no room for {data['partition']} in {data['directory']}: another broker should lead it "
        f"(epoch {data['leader_epoch']})"
    )


# -- the broker


def _controller(cause: str, data: Data) -> str:
    return f"became the controller in epoch {data['epoch']}"


_RESIGNATIONS: Final = {
    "session-lost": "its session ended",
    "overtaken": "another broker was elected",
    "stopped": "it stopped",
}


def _resigned(cause: str, data: Data) -> str:
    return f"is no longer the controller (epoch {data['epoch']}): {_RESIGNATIONS[cause]}"


def _refused(cause: str, data: Data) -> str:
    of = "this broker" if cause == "stale-broker-epoch" else f"controller {data['controller']}"
    return (
        f"rejected {data['request']} of controller {data['controller']}: it was for epoch "
        f"{data['epoch']} of {of}, and {data['known']} is known"
    )


def _session_lost(cause: str, data: Data) -> str:
    return (
        "its session with the coordination service expired: for the cluster it is dead until it "
        "registers again"
    )


def _session_back(cause: str, data: Data) -> str:
    return f"registered again after {span(data['took_ms'])}, with broker epoch {data['epoch']}"


def _stall(cause: str, data: Data) -> str:
    stood = f"its event loop stood still for {span(data['ms'])}"
    used = f"{span(data['used_ms'])} of the processor"
    match cause:
        case "busy":
            return f"{stood}: many short steps, or one that is not timed, used {used}"
        case "waiting":
            return (
                f"{stood}, and had {used}: a disk or another thread held it up, the machine is "
                "overloaded, or the process was paused"
            )
        case "request":
            ran = f"a {data['what']} request"
        case "task":
            ran = f"the task {data['what']!r}"
        case _:
            ran = f"Python's garbage collection ({data['what']})"
    waited = ""
    if data["used_ms"] < data["ms"] / 2:
        waited = f", but had {used}: it waited for a disk, or the machine is overloaded"
    return f"{stood}: {ran} took {span(data['step_ms'])}{waited}"


def _aborted(cause: str, data: Data) -> str:
    facts = (
        f"open for {span(data['open_ms'])}, {_counted(data['partitions'], 'partition')}, "
        f"producer {data['producer_id']} epoch {data['epoch']}"
    )
    match cause:
        case "timeout":
            return (
                f"transaction aborted: it took longer than {span(data['timeout_ms'])} "
                f"(transaction.timeout.ms); {facts}"
            )
        case "fenced":
            return f"transaction aborted: a new producer of this id fenced the last one; {facts}"
    return f"transaction aborted by its producer; {facts}"


# -- changes


def _changed(cause: str, data: Data) -> str:
    what = data.get("resource") or data.get("entity")
    return f"{what}: {data['changes']}, by {_by(data)}"


def _acl(cause: str, data: Data) -> str:
    return f"{data['change']} by {_by(data)}: {data['acl']}"


def _created(cause: str, data: Data) -> str:
    partitions, replicas = data["partitions"], data["replication_factor"]
    counts = f"{_counted(partitions, 'partition')}, {_counted(replicas, 'replica')} each"
    match cause:
        case "automatic":
            return f"created on a client's first request for it: {counts}"
        case "internal":
            return f"created by the broker: {counts}"
    return f"created by {_by(data)}: {counts}"


def _deleted(cause: str, data: Data) -> str:
    return f"deletion requested by {_by(data)}"


_SENTENCES: Final[Mapping[str, Callable[[str, Data], str]]] = {
    "group.rebalance": _rebalance,
    "group.stable": _stable,
    "group.empty": _empty,
    "group.deleted": _group_deleted,
    "offsets.expired": _offsets_expired,
    "offsets.reset": _offsets_reset,
    "isr.shrink": _isr_shrink,
    "isr.expand": _isr_expand,
    "isr.refused": _isr_refused,
    "leader.elected": _elected,
    "partition.offline": _offline,
    "log.truncated": _truncated,
    "throttle.begin": _throttle_begin,
    "throttle.end": _throttle_end,
    "reject.produce": _reject_produce,
    "reject.authorization": _denied,
    "reject.connection": _reject_connection,
    "log.recovered": _recovered,
    "segment.deleted": _segment_deleted,
    "compaction.failed": _compaction_failed,
    "directory.offline": _directory,
    "directory.full": _full,
    "controller.elected": _controller,
    "controller.resigned": _resigned,
    "role.refused": _refused,
    "session.lost": _session_lost,
    "session.back": _session_back,
    "loop.stall": _stall,
    "transaction.aborted": _aborted,
    "config.changed": _changed,
    "quota.changed": _changed,
    "acl.changed": _acl,
    "topic.created": _created,
    "topic.deleted": _deleted,
}

"""What an entry says in plain words: made from its data when it is read, never stored.

A sentence leaves out the subject, which its reader has in front of it. Data that an older broker
did not record is left out, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.diary.group_sentences import GROUP_SENTENCES
from barnabas.diary.wording import Data, by, counted, listed, size, span


def sentence(event: str, cause: str, data: Data) -> str:
    """Return an entry in words; one of an unknown event as it stands."""
    say = _SENTENCES.get(event)
    if say is None:
        return _plain(event, cause, data)
    try:
        return say(cause, data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return _plain(event, cause, data)  # written by a version with other data


def _plain(event: str, cause: str, data: Data) -> str:
    numbers = ", ".join(f"{name}={value}" for name, value in data.items())
    return f"{event}: {cause}" + (f" ({numbers})" if numbers else "")


# -- replication


def _isr(data: Data) -> str:
    return f"ISR {listed(data['from'])} → {listed(data['to'])}"


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
    return f"{_isr(data)}: broker {listed(data['removed'])} {why}"


def _lagging(replica: Data, data: Data) -> str:
    text = f"broker {replica['id']} "
    if replica["caught_up_ms_ago"] >= 0:
        text += f"last had everything {span(replica['caught_up_ms_ago'])} ago"
    else:
        text += "has not caught up in this leader's term"
    if replica["behind"] >= 0:
        text += f" and is {counted(replica['behind'], 'record')} behind"
    if "lag_ms_max" in data:
        text += f" (replica.lag.time.max.ms {span(data['lag_ms_max'])})"
    return text


def _isr_expand(cause: str, data: Data) -> str:
    added = [each for each in data["to"] if each not in data["from"]]
    return f"{_isr(data)}: broker {listed(added)} caught up"


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
            return f"{begin}: the partition is new, ISR {listed(data['isr'])}"
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
                f"({listed(data['isr_before'])}) was alive, records may be lost"
            )
        case "directory-failed":
            why = f"broker {previous} cannot serve it: its disk failed or is full"
        case "restarted":
            why = f"broker {previous} restarted, and may have lost what it had not flushed"
        case _:
            why = "it was in sync when the partition lost its leader, and is back"
    return f"{begin}, because {why}; ISR {listed(data['isr'])}"


def _offline(cause: str, data: Data) -> str:
    text = f"no leader: none of the in-sync replicas {listed(data['isr'])} can lead"
    if data["dead"]:
        text += f"; not alive: {listed(data['dead'])}"
    if data["failed"]:
        text += f"; with a failed disk: {listed(data['failed'])}"
    out_of_sync = [each for each in data["replicas"] if each not in data["isr"]]
    if out_of_sync:
        text += f"; out of sync: {listed(out_of_sync)} (an unclean election could elect them)"
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
        f"{span(data['took_ms'])}: {counted(data['throttles'], 'pause')}, the longest "
        f"{span(data['longest_ms'])}"
    )


def _reject_produce(cause: str, data: Data) -> str:
    head = f"records for {data['partition']} were rejected with {data['code']}"
    match cause:
        case "too-large":
            why = f"too large for max.message.bytes={data['limit']}" if "limit" in data else ""
        case "not-enough-replicas":
            why = (
                f"{counted(data['isr'], 'in-sync replica')}, min.insync.replicas={data['min_isr']}"
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
        f"{counted(data['logs'], 'log')} recovered in {span(data['took_ms'])} after an unclean "
        "shutdown"
    )


_RULES: Final = {
    "time": "their newest records were older than retention.ms",
    "size": "the log was larger than retention.bytes",
    "start-offset": "they lay below the log start offset",
}


def _segment_deleted(cause: str, data: Data) -> str:
    text = (
        f"broker {data['broker']} deleted {counted(data['segments'], 'segment')} "
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
        f"{counted(data['partitions'], 'partition')}: {data['reason']}"
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
        f"open for {span(data['open_ms'])}, {counted(data['partitions'], 'partition')}, "
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
    return f"{what}: {data['changes']}, by {by(data)}"


def _acl(cause: str, data: Data) -> str:
    return f"{data['change']} by {by(data)}: {data['acl']}"


def _created(cause: str, data: Data) -> str:
    partitions, replicas = data["partitions"], data["replication_factor"]
    counts = f"{counted(partitions, 'partition')}, {counted(replicas, 'replica')} each"
    match cause:
        case "automatic":
            return f"created on a client's first request for it: {counts}"
        case "internal":
            return f"created by the broker: {counts}"
    return f"created by {by(data)}: {counts}"


def _deleted(cause: str, data: Data) -> str:
    return f"deletion requested by {by(data)}"


_SENTENCES: Final[Mapping[str, Callable[[str, Data], str]]] = {
    **GROUP_SENTENCES,
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

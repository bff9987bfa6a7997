"""The log lines of notes: in Kafka's words where tools look for them, else as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.diary.sentences import sentence
from barnabas.model.note import Note


def log_line(note: Note, broker_id: int) -> str:
    """Return the message that a broker logs for a note."""
    shape = _SHAPES.get(note.event)
    if shape is not None:
        try:
            return shape(note, broker_id)
        except (KeyError, TypeError):
            pass  # a note whose data lacks a number must not stop the decision
    return f"{note.subject}: {sentence(note.event, note.cause, note.data)}"


def _numbers(values: Any) -> str:
    return ",".join(map(str, values))


def _leads(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Broker id={broker_id}] Leader {note.subject} starts at leader epoch "
        f"{data['leader_epoch']} from offset {data['offset']} with partition epoch "
        f"{data['version']}, high watermark {data['high_watermark']}, ISR "
        f"[{_numbers(data['isr'])}], adding replicas [{_numbers(data['adding'])}], removing "
        f"replicas [{_numbers(data['removing'])}]. Previous leader {data['previous']} and previous "
        f"leader epoch was {data['previous_epoch']}."
    )


def _follows(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Broker id={broker_id}] Follower {note.subject} starts at leader epoch "
        f"{data['leader_epoch']} from offset {data['offset']} with partition epoch "
        f"{data['version']} and high watermark {data['high_watermark']}. Current leader is "
        f"{data['leader']}. Previous leader {data['previous']} and previous leader epoch was "
        f"{data['previous_epoch']}."
    )


def _stopped(note: Note, broker_id: int) -> str:
    more = " and deletes it" if note.cause == "deleted" else ""
    return (
        f"[Broker id={broker_id}] Stops replica {note.subject}{more}, leader epoch "
        f"{note.data['leader_epoch']}"
    )


def _refused_role(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Broker id={broker_id}] Ignoring {data['request']} from controller "
        f"{data['controller']} with epoch {data['epoch']}: {note.cause}, known is {data['known']}"
    )


def _elected(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Controller id={broker_id} epoch={data['controller_epoch']}] Changed partition "
        f"{note.subject} from {data['from_state']} to OnlinePartition with leader "
        f"{data['leader']}, ISR [{_numbers(data['isr'])}], leader epoch {data['leader_epoch']}, "
        f"previous leader {data['previous']}, ISR before [{_numbers(data['isr_before'])}]. "
        f"Cause: {note.cause}"
    )


def _offline(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Controller id={broker_id} epoch={data['controller_epoch']}] Changed partition "
        f"{note.subject} from OnlinePartition to OfflinePartition, ISR [{_numbers(data['isr'])}], "
        f"not alive [{_numbers(data['dead'])}], failed disk [{_numbers(data['failed'])}]. "
        f"Cause: {note.cause}"
    )


def _isr_shrink(note: Note, broker_id: int) -> str:
    data = note.data
    if "replicas" not in data:  # the controller's own decision
        return (
            f"[Controller id={broker_id} epoch={data['controller_epoch']}] Shrinking ISR of "
            f"{note.subject} from {_numbers(data['from'])} to {_numbers(data['to'])} and version "
            f"updated to {data['version']}, leader epoch {data['leader_epoch']}. "
            f"Cause: {note.cause}, brokers {_numbers(data['removed'])}"
        )
    out = ", ".join(
        f"(brokerId: {each['id']}, endOffset: {each['end_offset']}, "
        f"caughtUpMsAgo: {each['caught_up_ms_ago']})"
        for each in data["replicas"]
    )
    behind = ", ".join(f"{each['id']} is {each['behind']} behind" for each in data["replicas"])
    return (
        f"[Partition {note.subject} broker={broker_id}] Shrinking ISR from "
        f"{_numbers(data['from'])} to {_numbers(data['to'])}. Leader: (highWatermark: "
        f"{data['high_watermark']}, endOffset: {data['end_offset']}). Out of sync replicas: {out}. "
        f"ISR updated to {_numbers(data['to'])} and version updated to {data['version']}. "
        f"Cause: {note.cause}, {behind}"
    )


def _isr_expand(note: Note, broker_id: int) -> str:
    data = note.data
    added = [each for each in data["to"] if each not in data["from"]]
    return (
        f"[Partition {note.subject} broker={broker_id}] ISR updated to {_numbers(data['to'])} and "
        f"version updated to {data['version']}, from {_numbers(data['from'])}. "
        f"Cause: {note.cause} {_numbers(added)}"
    )


def _isr_refused(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Partition {note.subject} broker={broker_id}] ISR change from {_numbers(data['from'])} "
        f"to {_numbers(data['to'])} rejected by the controller with {data['code']}, leader epoch "
        f"{data['leader_epoch']}, version {data['version']}. Cause: {note.cause}"
    )


def _group_name(note: Note) -> str:
    return note.subject.removeprefix("group:")


def _rebalance(note: Note, broker_id: int) -> str:
    data = note.data
    state = f" in state {data['state']}" if "state" in data else ""
    reason = sentence(note.event, note.cause, data).partition(": ")[2]
    return (
        f"Preparing to rebalance group {_group_name(note)}{state} with old generation "
        f"{data['generation']} (reason: {reason}). Cause: {note.cause}"
    )


def _stable(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"Stabilized group {_group_name(note)} generation {data['generation']} with "
        f"{data['after']} members, before {data['before']}, after {data['took_ms']} ms. "
        f"Cause: {note.cause}"
    )


def _truncated(note: Note, broker_id: int) -> str:
    data = note.data
    return (
        f"[Partition {note.subject} broker={broker_id}] Truncating to offset {data['to']} from "
        f"{data['from']}. Cause: {note.cause}, leader {data['leader']} epoch {data['leader_epoch']}"
    )


_SHAPES: Final[Mapping[str, Callable[[Note, int], str]]] = {
    "role.leads": _leads,
    "role.follows": _follows,
    "role.stopped": _stopped,
    "role.refused": _refused_role,
    "leader.elected": _elected,
    "partition.offline": _offline,
    "isr.shrink": _isr_shrink,
    "isr.expand": _isr_expand,
    "isr.refused": _isr_refused,
    "group.rebalance": _rebalance,
    "group.stable": _stable,
    "log.truncated": _truncated,
}

"""Records of the coordinators' topics as `kafka-dump-log` prints them: JSON with Kafka's names."""

from __future__ import annotations

import base64
import json
from typing import Any

from barnabas.groups import records as groups
from barnabas.model.errors import BarnabasError, RemoteProtocolError
from barnabas.model.ids import uuid_text
from barnabas.transactions import records as transactions
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.wire.schema import Field, Message, Struct
from barnabas.wire.versioned import decode_versioned

Shown = tuple[str | None, str | None]
"""Key and value as text."""

DELETED = "<DELETE>"
FIRST_KEY_WITH_IDS = 3
"""Kafka calls the fields `groupId` and `memberId` in the keys from this version on."""
CONSUMER_PROTOCOL = "consumer"


def group_record(offset: int, key: bytes | None, value: bytes | None) -> Shown:
    """Return a record of `__consumer_offsets`."""
    if key is None:
        return f"Error at offset {offset}, skipping. The record has no key", None
    kind = int.from_bytes(key[:2], "big", signed=True)
    try:
        decoded = groups.decode_key(key)
        if decoded is None:
            return f"Unknown record type {kind} at offset {offset}, skipping.", None
        names = {"group": "groupId", "member": "memberId"} if kind >= FIRST_KEY_WITH_IDS else {}
        data = {names.get(name, name): each for name, each in _fields(decoded, kind).items()}
        shown_key = _compact({"type": str(kind), "data": data})
        return shown_key, DELETED if value is None else _group_value(decoded, value)
    except BarnabasError as failure:
        return f"Error at offset {offset}, skipping. {failure}", None


def _group_value(key: Message, value: bytes) -> str:
    decoded = groups.decode_value(key, value)
    version = int.from_bytes(value[:2], "big", signed=True)
    data = _fields(decoded, version)
    if isinstance(decoded, groups.ClassicGroupValue) and _is_of_consumers(decoded):
        for member, shown in zip(decoded.members, data["members"], strict=True):
            _replace(shown, "subscription", ConsumerProtocolSubscription, member.subscription)
            _replace(shown, "assignment", ConsumerProtocolAssignment, member.assignment)
    return _compact({"version": str(version), "data": data})


def _is_of_consumers(group: groups.ClassicGroupValue) -> bool:
    """Return whether subscriptions and assignments can be read: other protocols have others."""
    return group.protocol_type == CONSUMER_PROTOCOL


def _replace(shown: dict[str, Any], name: str, cls: type[Message], data: bytes) -> None:
    """Show what is embedded, if it can be read."""
    try:
        decoded, version = decode_versioned(cls, bytes(data))
    except RemoteProtocolError:
        return
    shown[name] = _fields(decoded, min(version, cls.VERSIONS.last))


def _fields(message: Struct, version: int) -> dict[str, Any]:
    """Return the fields that a version has, by Kafka's names."""
    return {
        _camel(field.name): _shown(field, getattr(message, field.name), version)
        for field in message.FIELDS
        if version in field.versions
        and (field.tag is None or getattr(message, field.name) != field.default)
    }


def _shown(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_one(field, each, version) for each in value]
    return _one(field, value, version)


def _one(field: Field, value: Any, version: int) -> Any:
    if field.struct is not None:
        return _fields(value, version)
    if field.kind == "uuid":
        return uuid_text(value)
    if field.kind == "bytes":
        return base64.b64encode(bytes(value)).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def transaction_record(offset: int, key: bytes | None, value: bytes | None) -> Shown:
    """Return a record of `__transaction_state`, in the words of Kafka 3.9."""
    if key is None:
        return f"Error at offset {offset}, skipping. The record has no key", None
    try:
        name = transactions.decode_key(key)
        if name is None:
            kind = int.from_bytes(key[:2], "big", signed=True)
            return f"unknown::version={kind}", None
        shown_key = f"transaction_metadata::transactionalId={name}"
        if value is None:
            return shown_key, DELETED
        state = transactions.decode_value(value)
    except BarnabasError as failure:
        return f"Error at offset {offset}, skipping. {failure}", None
    partitions = ",".join(map(str, sorted(state.partitions)))
    title = "".join(word.capitalize() for word in state.state.name.split("_"))
    return shown_key, (
        f"producerId:{state.producer_id},producerEpoch:{state.producer_epoch},state={title},"
        f"partitions=[{partitions}],txnLastUpdateTimestamp={state.last_update_ms},"
        f"txnTimeoutMs={state.timeout_ms}"
    )

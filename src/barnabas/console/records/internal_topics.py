"""Records of Kafka's own topics as documents: committed offsets, groups, transactions."""

from __future__ import annotations

from typing import Any

from barnabas.groups import records as groups
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import uuid_text
from barnabas.transactions.records import TransactionLogKey, TransactionLogValue
from barnabas.transactions.state import State
from barnabas.wire.schema import Struct
from barnabas.wire.versioned import decode_versioned

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


class UnknownLayoutError(ValueError):
    """A record that none of our layouts reads."""


def read_internal(topic: str, side: str, data: bytes, key: bytes | None) -> dict[str, Any]:
    """Return the key or the value of a record of an internal topic; raise UnknownLayoutError.

    A value can be read only with the key of its record.
    """
    try:
        if topic == TRANSACTIONS_TOPIC:
            return _transaction(side, data)
        about = groups.decode_key(data if side == "key" else key or b"")
        if about is None:
            raise UnknownLayoutError("a kind of record that a newer broker wrote")
        found = about if side == "key" else groups.decode_value(about, data)
        return {"layout": type(found).__name__, **_document(found)}
    except (BarnabasError, ValueError, IndexError, OverflowError) as failure:
        raise UnknownLayoutError(str(failure)) from None


def _transaction(side: str, data: bytes) -> dict[str, Any]:
    if side == "key":
        key, version = decode_versioned(TransactionLogKey, data)
        if version > 0:
            raise UnknownLayoutError("a kind of record that a newer broker wrote")
        return {"layout": type(key).__name__, **_document(key)}
    value, _ = decode_versioned(TransactionLogValue, data)
    found = {"layout": type(value).__name__, **_document(value)}
    if value.transaction_status in set(State):
        found["transaction_status"] = State(value.transaction_status).title
    return found


def _document(found: Struct) -> dict[str, Any]:
    return {
        each.name: uuid_text(getattr(found, each.name))
        if each.kind == "uuid" and not each.is_array
        else _plain(getattr(found, each.name))
        for each in found.FIELDS
    }


def _plain(found: Any) -> Any:
    if isinstance(found, Struct):
        return _document(found)
    if isinstance(found, list):
        return [_plain(each) for each in found]
    if isinstance(found, memoryview | bytearray):
        return bytes(found)
    return found

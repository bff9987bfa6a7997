"""Nodes of a group of stream consumers: paths and contents, as Kafka's consumer wrote them.

/consumers/<group>/ids/<consumer>                  the consumer's subscription (ephemeral)
/consumers/<group>/owners/<topic>/<partition>      the stream that reads it (ephemeral)
/consumers/<group>/offsets/<topic>/<partition>     the committed offset, as decimal text
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from barnabas.client.addresses import Address, parse_address
from barnabas.model.errors import CorruptFileError

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__barnabas_diary"})


def ids_path(group: str) -> str:
    """Return the path under which the consumers of a group register."""
    return f"/consumers/{group}/ids"


def owner_path(group: str, topic: str, partition: int) -> str:
    """Return the path of the owner of a partition."""
    return f"/consumers/{group}/owners/{topic}/{partition}"


def offset_path(group: str, topic: str, partition: int) -> str:
    """Return the path of the committed offset of a partition."""
    return f"/consumers/{group}/offsets/{topic}/{partition}"


def topic_path(topic: str) -> str:
    """Return the path of the partitions of a topic."""
    return f"{TOPICS}/{topic}"


def encode_subscription(subscription: Mapping[str, int], pattern: str, now_ms: int) -> bytes:
    """Return a consumer's registration."""
    return json.dumps(
        {
            "version": 1,
            "subscription": dict(subscription),
            "pattern": pattern,
            "timestamp": str(now_ms),
        },
        separators=(",", ":"),
    ).encode()


def decode_subscription(path: str, data: bytes) -> tuple[dict[str, int], str]:
    """Return a consumer's subscription: streams by topic or pattern, and the pattern's kind."""
    value = _parsed(path, data)
    try:
        streams = {str(name): int(count) for name, count in value["subscription"].items()}
        return streams, str(value["pattern"])
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise CorruptFileError(f"node {path} is not a consumer: {data[:80]!r}") from failure


def decode_partitions(path: str, data: bytes) -> list[int]:
    """Return the partitions of a topic, sorted."""
    try:
        return sorted(int(partition) for partition in _parsed(path, data)["partitions"])
    except (KeyError, TypeError, ValueError) as failure:
        raise CorruptFileError(f"node {path} is not a topic: {data[:80]!r}") from failure


def decode_offset(path: str, data: bytes) -> int:
    """Return a committed offset."""
    try:
        return int(data)
    except ValueError as failure:
        raise CorruptFileError(f"node {path} is not an offset: {data[:80]!r}") from failure


def decode_address(path: str, data: bytes) -> Address | None:
    """Return the plaintext endpoint of a registered broker, None if it has none."""
    value = _parsed(path, data)
    try:
        protocols = value.get("listener_security_protocol_map") or {}
        for endpoint in value.get("endpoints") or ():
            name, _, address = str(endpoint).partition("://")
            if protocols.get(name, name) == "PLAINTEXT":
                return parse_address(address)
        host, port = value.get("host"), int(value.get("port", -1))
    except (TypeError, ValueError, AttributeError) as failure:
        raise CorruptFileError(f"node {path} is not a broker: {data[:80]!r}") from failure
    return Address(str(host), port) if host and port > 0 else None


def _parsed(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as failure:
        raise CorruptFileError(f"node {path} is not valid JSON: {data[:80]!r}") from failure
    if not isinstance(value, dict):
        raise CorruptFileError(f"node {path} must be a JSON object, not {type(value).__name__}")
    return value

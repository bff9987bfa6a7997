"""Paths and contents of the coordination tree, byte for byte as Kafka 3.9 writes them.

Every reader accepts unknown fields; every writer emits compact JSON in Kafka's field order, so that
existing ZooKeeper tools can read our tree. This module only has paths and bytes, and does no IO.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote_plus

from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
LIVES = "/brokers/lives"
INITIAL_USERS = "/barnabas/initial_users"
"""The only nodes that Kafka does not have are this one and the one before."""
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
DELETE_TOPICS = "/admin/delete_topics"
CONFIG_CHANGES = "/config/changes"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
LOG_DIR_EVENTS = "/log_dir_event_notification"
ISR_CHANGES = "/isr_change_notification"
LEGACY_REASSIGNMENT = "/admin/reassign_partitions"
LEGACY_PREFERRED_ELECTION = "/admin/preferred_replica_election"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
DEFAULT_ENTITY = "<default>"

CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")
"""Types of configs whose nodes Apache Kafka 3.9 creates at its first start."""
LATER_CONFIG_TYPES = ("client-metrics",)
"""Types of configs that it does not keep in the tree; each has a node once there is one."""

PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    *(f"/config/{each}" for each in CONFIG_TYPES),
)
"""Created by the first broker that starts."""


def broker_path(broker_id: int) -> str:
    """Return where a broker registers itself."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return where a topic's assignment is kept."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the parent of a topic's partition states."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Return the parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """Return where a partition's leader and ISR are kept."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(entity_type: str, name: str) -> str:
    """Return where the dynamic configs of an entity are kept (`topics`, `brokers`, …)."""
    return f"/config/{entity_type}/{sanitized(name)}"


def sanitized(name: str) -> str:
    """Return an entity name as it is in a path: URL-encoded, except the default entity."""
    if name == DEFAULT_ENTITY:
        return name
    return quote(name, safe="").replace("~", "%7E")


def initial_user_path(name: str) -> str:
    """Return the node that says that an initial user was added."""
    return f"{INITIAL_USERS}/{sanitized(name)}"


def clients_of(user: str) -> str:
    """Return the entity type of a user's client ids; quotas are set for each or their default."""
    return f"users/{sanitized(user)}/clients"


def user_of(entity_type: str) -> str | None:
    """Return the user whose client ids are of this entity type; None if it is another type."""
    parts = entity_type.split("/")
    return (
        desanitized(parts[1]) if len(parts) == 3 and parts[0::2] == ["users", "clients"] else None
    )


def desanitized(segment: str) -> str:
    """Return the entity name behind a path segment."""
    return segment if segment == DEFAULT_ENTITY else unquote_plus(segment)


def _shown(path: str, data: bytes) -> str:
    """Return the beginning of a node for an error message, unless it may be secret."""
    return "[hidden]" if path.startswith(("/config/users", "/config/brokers")) else repr(data[:80])


def compact(value: object) -> bytes:
    """Encode JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def parsed(path: str, data: bytes) -> dict[str, Any]:
    """Decode a node's JSON object; raise CorruptFileError naming the node."""
    try:
        value = json.loads(data)
    except ValueError:
        raise CorruptFileError(f"node {path} is not JSON: {_shown(path, data)}") from None
    if not isinstance(value, dict):
        raise CorruptFileError(f"node {path} is a JSON {type(value).__name__}, not an object")
    return value


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The node of a topic: its id and the replicas of each partition."""

    topic_id: Uuid
    replicas: Mapping[int, Sequence[int]]
    adding: Mapping[int, Sequence[int]] = field(default_factory=dict)
    removing: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the node's bytes (version 3)."""
        return compact(
            {
                "partitions": _by_partition(self.replicas),
                "topic_id": uuid_text(self.topic_id),
                "adding_replicas": _by_partition(self.adding),
                "removing_replicas": _by_partition(self.removing),
                "version": 3,
            }
        )

    @classmethod
    def decode(cls, path: str, data: bytes) -> TopicAssignment:
        """Read a node of any version; before version 3 there is no id."""
        value = parsed(path, data)
        try:
            text = value.get("topic_id")
            return cls(
                uuid_from_text(text) if text else ZERO_UUID,
                _from_partitions(value["partitions"]),
                _from_partitions(value.get("adding_replicas", {})),
                _from_partitions(value.get("removing_replicas", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as failure:
            raise CorruptFileError(f"node {path} is not a topic: {data[:80]!r}") from failure


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The node of a partition: its leader and ISR."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    controller_epoch: int
    recovering: bool = False

    def encode(self) -> bytes:
        """Return the node's bytes."""
        value: dict[str, object] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
        }
        if self.recovering:
            value["leader_recovery_state"] = 1
        return compact(value)

    @classmethod
    def decode(cls, path: str, data: bytes) -> PartitionState:
        """Read the node's bytes."""
        value = parsed(path, data)
        try:
            return cls(
                int(value["leader"]),
                int(value["leader_epoch"]),
                tuple(int(replica) for replica in value["isr"]),
                int(value["controller_epoch"]),
                value.get("leader_recovery_state", 0) == 1,
            )
        except (KeyError, TypeError, ValueError) as failure:
            raise CorruptFileError(
                f"node {path} is not a partition state: {data[:80]!r}"
            ) from failure


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The node of a live broker: its endpoints."""

    endpoints: Sequence[tuple[str, str, int]]
    """Listener name, host, port."""
    protocols: Mapping[str, str]
    rack: str | None
    timestamp_ms: int
    control_plane: str | None = None
    """The only listener on which the broker accepts controller requests; not in Kafka."""

    def encode(self) -> bytes:
        """Return the node's bytes (version 5)."""
        plain = next(
            (
                (host, port)
                for name, host, port in self.endpoints
                if self.protocols.get(name) == "PLAINTEXT"
            ),
            (None, -1),
        )
        value: dict[str, object] = {
            "features": {},
            "listener_security_protocol_map": dict(self.protocols),
            "endpoints": [f"{name}://{_bracketed(h)}:{p}" for name, h, p in self.endpoints],
        }
        if self.rack is not None:
            value["rack"] = self.rack
        value |= {
            "jmx_port": -1,
            "port": plain[1],
            "host": plain[0],
            "version": 5,
            "timestamp": str(self.timestamp_ms),
        }
        if self.control_plane is not None:
            value["control_plane_listener"] = self.control_plane
        return compact(value)

    @classmethod
    def decode(cls, path: str, data: bytes) -> BrokerRegistration:
        """Read a node of any version; before version 4 listeners are named by their protocol."""
        value = parsed(path, data)
        try:
            if value.get("endpoints"):
                endpoints = [_endpoint(text) for text in value["endpoints"]]
            else:
                endpoints = [("PLAINTEXT", str(value["host"]), int(value["port"]))]
            protocols = value.get("listener_security_protocol_map") or {
                name: name for name, _, _ in endpoints
            }
            rack = value.get("rack")
            control_plane = value.get("control_plane_listener")
            return cls(
                endpoints,
                {str(name): str(protocol) for name, protocol in protocols.items()},
                None if rack is None else str(rack),
                int(value.get("timestamp", -1)),
                control_plane if any(name == control_plane for name, _, _ in endpoints) else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as failure:
            raise CorruptFileError(f"node {path} is not a broker: {data[:80]!r}") from failure


@dataclass(frozen=True, slots=True)
class DelegationTokenNode:
    """The node of a delegation token; principals are written `User:alice`. It has no secret."""

    token_id: str
    owner: str
    requester: str
    renewers: Sequence[str]
    issued_ms: int
    expires_ms: int
    ends_ms: int

    def encode(self) -> bytes:
        """Return the node's bytes (version 3)."""
        return compact(
            {
                "version": 3,
                "owner": sanitized(self.owner),
                "tokenRequester": sanitized(self.requester),
                "renewers": [sanitized(renewer) for renewer in self.renewers],
                "issueTimestamp": self.issued_ms,
                "maxTimestamp": self.ends_ms,
                "expiryTimestamp": self.expires_ms,
                "tokenId": self.token_id,
            }
        )

    @classmethod
    def decode(cls, path: str, data: bytes) -> DelegationTokenNode:
        """Read a node of any version; before version 3 the owner has requested it."""
        value = parsed(path, data)
        try:
            owner = desanitized(value["owner"])
            return cls(
                str(value["tokenId"]),
                owner,
                desanitized(value["tokenRequester"]) if "tokenRequester" in value else owner,
                tuple(desanitized(renewer) for renewer in value["renewers"]),
                int(value["issueTimestamp"]),
                int(value["expiryTimestamp"]),
                int(value["maxTimestamp"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as failure:
            raise CorruptFileError(f"node {path} is not a token: {data[:80]!r}") from failure


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the node of the cluster's id; its version is a string, as in Kafka."""
    return compact({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """Read the cluster's id."""
    value = parsed(CLUSTER_ID, data).get("id")
    if not isinstance(value, str):
        raise CorruptFileError(f"node {CLUSTER_ID} has no id: {data[:80]!r}")
    return value


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """Return the node that names the controller."""
    return compact(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """Return the id of the broker that is the controller."""
    try:
        return int(parsed(CONTROLLER, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as failure:
        raise CorruptFileError(f"node {CONTROLLER} names no broker: {data[:80]!r}") from failure


def decode_controller_epoch(data: bytes) -> int:
    """Return the epoch of the current or last controller; the first is 1."""
    try:
        return int(data)
    except ValueError as failure:
        raise CorruptFileError(
            f"node {CONTROLLER_EPOCH} is not a number: {data[:80]!r}"
        ) from failure


def decode_partitions(path: str, data: bytes) -> list[tuple[str, int, tuple[int, ...]]]:
    """Read a list of partitions, with replicas if the node has them (legacy requests)."""
    value = parsed(path, data)
    try:
        return [
            (
                str(each["topic"]),
                int(each["partition"]),
                tuple(int(replica) for replica in each.get("replicas", ())),
            )
            for each in value["partitions"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise CorruptFileError(f"node {path} lists no partitions: {data[:80]!r}") from failure


def encode_partitions(partitions: Sequence[tuple[str, int, tuple[int, ...]]]) -> bytes:
    """Return the node of a legacy reassignment."""
    return compact(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": number, "replicas": list(replicas)}
                for topic, number, replicas in partitions
            ],
        }
    )


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Return the broker whose disk failed."""
    try:
        return int(parsed(path, data)["broker"])
    except (KeyError, TypeError, ValueError) as failure:
        raise CorruptFileError(f"node {path} names no broker: {data[:80]!r}") from failure


def encode_config(values: Mapping[str, str]) -> bytes:
    """Return the node of an entity's dynamic configs."""
    return compact({"version": 1, "config": dict(values)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Read an entity's dynamic configs; an empty node has none."""
    if not data:
        return {}
    config = parsed(path, data).get("config", {})
    if not isinstance(config, dict):
        raise CorruptFileError(f"node {path} has no config object: {_shown(path, data)}")
    return {str(name): str(value) for name, value in config.items()}


def encode_config_change(entity_path: str) -> bytes:
    """Return a notification that an entity's configs changed."""
    return compact({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> tuple[str, str]:
    """Return the type and the name of the entity whose configs changed."""
    value = parsed(path, data).get("entity_path")
    if not isinstance(value, str) or "/" not in value:
        raise CorruptFileError(f"node {path} names no entity: {data[:80]!r}")
    entity_type, _, name = value.rpartition("/")  # the type of a user's client ids has slashes
    return entity_type, desanitized(name)


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return a notification that a log directory of a broker failed."""
    return compact({"version": 1, "broker": broker_id, "event": 1})


def encode_lives(epochs: Mapping[int, int]) -> bytes:
    """Return the node of the broker epochs that controllers have processed."""
    return compact(
        {"version": 1, "epochs": {str(broker): epochs[broker] for broker in sorted(epochs)}}
    )


def decode_lives(data: bytes) -> dict[int, int]:
    """Return the broker epochs that controllers have processed."""
    try:
        epochs = parsed(LIVES, data)["epochs"]
        return {int(broker): int(epoch) for broker, epoch in epochs.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise CorruptFileError(f"node {LIVES} names no epochs: {data[:80]!r}") from failure


def encode_producer_ids(broker_id: int, first: int, last: int) -> bytes:
    """Return the node of the newest block of producer ids (numbers as strings, last included)."""
    return compact(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def decode_producer_ids(data: bytes) -> int:
    """Return the last id of the newest block, or -1 if there is none yet."""
    if not data:
        return -1
    try:
        return int(parsed(PRODUCER_ID_BLOCK, data)["block_end"])
    except (KeyError, TypeError, ValueError) as failure:
        raise CorruptFileError(
            f"node {PRODUCER_ID_BLOCK} is not a producer id block: {data[:80]!r}"
        ) from failure


def _by_partition(values: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(values[partition]) for partition in sorted(values)}


def _from_partitions(values: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {int(partition): tuple(int(r) for r in values[partition]) for partition in values}


def _endpoint(text: str) -> tuple[str, str, int]:
    name, address = text.split("://", 1)
    host, port = address.rsplit(":", 1)
    return name, host.removeprefix("[").removesuffix("]"), int(port)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def consumer_offset_path(group: str, topic: str, partition: int) -> str:
    """Return the path of a committed offset in ZooKeeper; the group's name is not encoded.

    Raise InvalidValueError for a name with a slash: its nodes would mix with another group's.
    """
    if "/" in group:
        raise InvalidValueError(f"group {group!r}: must not contain a slash")
    return f"/consumers/{group}/offsets/{topic}/{partition}"

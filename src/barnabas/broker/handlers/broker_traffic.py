"""Which requests brokers send to each other; quotas of clients do not apply to them."""

from __future__ import annotations

from typing import Any

from barnabas.broker.network.request import Request
from barnabas.wire.apis import API_BY_NAME

BROKER_KEYS = frozenset(
    API_BY_NAME[name].key
    for name in (
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
        "ControlledShutdown",
        "WriteTxnMarkers",
        "AlterPartition",
        "AllocateProducerIds",
        "BrokerStanding",
    )
)
REPLICA_KEYS = frozenset(
    API_BY_NAME[name].key for name in ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")
)
"""Requests that carry the id of the replica that sends them, negative for a client."""
TXN_KEY = API_BY_NAME["AddPartitionsToTxn"].key
FIRST_BROKER_TXN_VERSION = 4


def sent_by_broker(request: Request[Any]) -> bool:
    """Return whether only brokers send such a request; that it may is another question."""
    key = request.api_key
    if key in REPLICA_KEYS:
        state = getattr(request.body, "replica_state", None)
        sender = state.replica_id if state is not None else request.body.replica_id
        return bool(sender >= 0)
    return key in BROKER_KEYS or (key == TXN_KEY and request.version >= FIRST_BROKER_TXN_VERSION)

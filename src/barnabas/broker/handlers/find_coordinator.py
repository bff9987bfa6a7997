"""FindCoordinator: which broker coordinates a group or a transactional id; v4 asks for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

GROUP, TRANSACTION = 0, 1
FIRST_BATCHED_VERSION = 4


async def handle(
    broker: Broker, request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse:
    """Look up every key, creating the internal topic on first use."""
    body = request.body
    if request.version >= FIRST_BATCHED_VERSION:
        found = [await _find(broker, request, key) for key in body.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(broker, request, body.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def refuse(
    request: FindCoordinatorRequest, code: ErrorCode, message: str | None
) -> FindCoordinatorResponse:
    """Answer with an error, per key in versions that ask for several.

    The single key of older versions may be empty; with a list of keys, nothing can fail.
    """
    if request.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[_failed(key, code, message) for key in request.coordinator_keys]
        )
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)


async def _find(broker: Broker, request: Request[FindCoordinatorRequest], key: str) -> Coordinator:
    try:
        node_id = await _coordinator(broker, request, key)
        for broker_id, host, port, _ in broker.endpoints_for(request.session):
            if broker_id == node_id:
                return Coordinator(
                    key=key, node_id=node_id, host=host, port=port, error_message=None
                )
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except RequestError as refusal:
        return _failed(key, refusal.code, refusal.message)


async def _coordinator(broker: Broker, request: Request[FindCoordinatorRequest], key: str) -> int:
    session, key_type = request.session, request.body.key_type
    if key_type == GROUP:
        if not broker.allows(session, Operation.DESCRIBE, ResourceType.GROUP, key):
            raise RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return await broker.groups.find(key)
    if key_type == TRANSACTION:
        if not broker.allows(session, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise RequestError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return await broker.transactions.find(key)
    raise RequestError(ErrorCode.INVALID_REQUEST, f"key type {key_type} is not supported")


def _failed(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)

"""AlterClientQuotas: set and remove quotas of users, client ids, their pairs, and addresses.

Any broker does it, as in Kafka: the change is made in the coordination tree, and every broker is
notified of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.handlers.quota_entities import (
    Entity,
    check_address,
    keys_of,
    node_of,
    parse_entity,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.quota_keys import check_limit, limit_text
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    OpData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request
    from barnabas.broker.network.session import Session


async def handle(
    broker: Broker, request: Request[AlterClientQuotasRequest]
) -> AlterClientQuotasResponse:
    """Change each entity on its own."""
    if not broker.allows(
        request.session, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = AlterClientQuotasResponse()
    for entry in request.body.entries:
        try:
            await _alter(broker, request.session, entry, dry_run=request.body.validate_only)
        except RequestError as refusal:
            response.entries.append(_result(entry, refusal.code, refusal.message))
        else:
            response.entries.append(_result(entry, ErrorCode.NONE, None))
    return response


def refuse(
    request: AlterClientQuotasRequest, code: ErrorCode, message: str | None
) -> AlterClientQuotasResponse:
    """Answer every entity with one error."""
    return AlterClientQuotasResponse(
        entries=[_result(entry, code, message) for entry in request.entries]
    )


async def _alter(broker: Broker, session: Session, entry: EntryData, *, dry_run: bool) -> None:
    entity = parse_entity(entry.entity)
    await check_address(entity)
    changes = _changes(entity, entry.ops)
    if dry_run:
        return
    entity_type, name = node_of(entity)

    def change(values: dict[str, str]) -> dict[str, str]:
        changed = {**values, **changes}
        return {key: value for key, value in changed.items() if value is not None}

    with refused_as():
        values = await broker.parts.config_store.update(entity_type, name, change)
    broker.configs_changed(entity_type, name, values)
    broker.audit_change(
        session,
        "quota changed",
        entity=", ".join(f"{kind} {name or '(default)'}" for kind, name in entity.items()),
        changes=", ".join(
            f"{key} removed" if value is None else f"{key}={value}"
            for key, value in changes.items()
        ),
    )


def _changes(entity: Entity, ops: list[OpData]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    keys = keys_of(entity)
    for op in ops:
        if op.key not in keys:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"quota {op.key!r}: must be {' or '.join(keys)}"
            )
        if op.key in changes:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"quota {op.key} is named twice")
        wrong = None if op.remove else check_limit(op.key, op.value)
        if wrong is not None:
            raise RequestError(ErrorCode.INVALID_REQUEST, wrong)
        changes[op.key] = None if op.remove else limit_text(op.key, op.value)
    return changes


def _result(entry: EntryData, code: ErrorCode, message: str | None) -> ResponseEntryData:
    return ResponseEntryData(error_code=code, error_message=message, entity=entry.entity)

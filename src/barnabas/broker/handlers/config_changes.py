"""What AlterConfigs and IncrementalAlterConfigs have in common: rights, and one outcome each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.configs import TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.session import Session


class Resource(Protocol):
    """A topic or a broker whose configs change."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


async def change_each(
    broker: Broker,
    session: Session,
    resources: Iterable[R],
    change: Callable[[R], Awaitable[None]],
) -> list[tuple[R, ErrorCode, str | None]]:
    """Change each resource on its own; return what became of it."""
    outcomes: list[tuple[R, ErrorCode, str | None]] = []
    seen: set[tuple[int, str]] = set()
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        try:
            if key in seen:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"{key[1]!r} is named twice")
            seen.add(key)
            _authorize(broker, session, resource)
            await change(resource)
        except RequestError as refusal:
            outcomes.append((resource, refusal.code, refusal.message))
        else:
            outcomes.append((resource, ErrorCode.NONE, None))
    return outcomes


def _authorize(broker: Broker, session: Session, resource: Resource) -> None:
    operation = Operation.ALTER_CONFIGS
    if resource.resource_type == TOPIC:
        if not broker.allows(session, operation, ResourceType.TOPIC, resource.resource_name):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not broker.allows(session, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

"""What AlterConfigs and IncrementalAlterConfigs share: authorization, and one result each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.cluster.configs import TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session


class Resource(Protocol):
    """A topic or a broker whose configs change."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)
Outcome = TypeVar("Outcome")


async def change_each(
    broker: Broker,
    session: Session,
    resources: Iterable[R],
    change: Callable[[R], Awaitable[None]],
    respond: Callable[..., Outcome],
) -> list[Outcome]:
    """Change each resource on its own; return its result in the form of the API's response."""
    outcomes: list[Outcome] = []
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
            outcomes += respond_each([resource], refusal.code, refusal.message, respond)
        else:
            outcomes += respond_each([resource], ErrorCode.NONE, None, respond)
    return outcomes


def respond_each(
    resources: Iterable[Resource],
    code: ErrorCode,
    message: str | None,
    respond: Callable[..., Outcome],
) -> list[Outcome]:
    """Answer every resource with the same error."""
    return [
        respond(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource in resources
    ]


def _authorize(broker: Broker, session: Session, resource: Resource) -> None:
    operation = Operation.ALTER_CONFIGS
    if resource.resource_type == TOPIC:
        if not broker.allows(session, operation, ResourceType.TOPIC, resource.resource_name):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not broker.allows(session, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

"""What AlterConfigs and IncrementalAlterConfigs share: authorization, and one result each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.broker.cluster.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.config.broker import BrokerOptions
from barnabas.config.client_metrics import ClientMetricsOptions
from barnabas.config.option import Section
from barnabas.config.topic import TopicOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session


class Resource(Protocol):
    """A topic or a broker whose configs change."""

    resource_type: int
    resource_name: str
    configs: Any
    """New values, with `name` and `value`, and `config_operation` in IncrementalAlterConfigs."""


SET, DELETE = 0, 1
"""Operations of IncrementalAlterConfigs; only DELETE has no value."""
OPERATIONS = ("set", "delete", "append", "subtract")
_KINDS = {
    TOPIC: "topic",
    GROUP: "group",
    BROKER_LOGGER: "loggers of broker",
    CLIENT_METRICS: "client metrics",
}
_OPTIONS: dict[int, type[Section]] = {TOPIC: TopicOptions, CLIENT_METRICS: ClientMetricsOptions}

R = TypeVar("R", bound=Resource)
Outcome = TypeVar("Outcome")


async def change_each(
    broker: Broker,
    session: Session,
    resources: Iterable[R],
    change: Callable[[R, bool], Awaitable[None]],
    respond: Callable[..., Outcome],
    *,
    dry_run: bool,
) -> list[Outcome]:
    """Change each resource on its own; return its result in the form of the API's response.

    `change` is called with a resource, and whether only to check it. As in Kafka, mistakes in the
    request itself, and invalid options of a broker, are reported before the client is authorized.
    """
    outcomes: list[Outcome] = []
    seen: set[tuple[int, str]] = set()
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        try:
            if (kind, name) in seen:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"{name!r} is named twice")
            seen.add((kind, name))
            _check_configs(resource)
            if kind == BROKER:
                await change(resource, True)
            authorize_configs(broker, session, Operation.ALTER_CONFIGS, kind, name)
            await change(resource, dry_run)
            if not dry_run:
                _audit(broker, session, resource)
        except RequestError as refusal:
            outcomes += respond_each([resource], refusal.code, refusal.message, respond)
        else:
            outcomes += respond_each([resource], ErrorCode.NONE, None, respond)
    return outcomes


def _audit(broker: Broker, session: Session, resource: Resource) -> None:
    """Record a change; of secrets, and of options that may be some, only the names."""
    options = _OPTIONS.get(resource.resource_type, BrokerOptions)
    changes = []
    for config in resource.configs:
        operation = OPERATIONS[getattr(config, "config_operation", SET)]
        declared = options.find(config.name)
        shown = resource.resource_type == BROKER_LOGGER or (
            declared is not None and not declared.sensitive
        )
        value = f"={config.value if shown else '[hidden]'}" if config.value is not None else ""
        changes.append(f"{operation} {config.name}{value}")
    kind = _KINDS.get(resource.resource_type, "broker")
    broker.audit_change(
        session,
        "configs changed",
        resource=f"{kind} {resource.resource_name or '(default)'}",
        changes=", ".join(changes),
    )


def _check_configs(resource: Resource) -> None:
    """Raise if a config is named twice, or has no value although it needs one."""
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{resource.resource_name!r} names a config twice"
        )
    for config in resource.configs:
        if config.value is None and getattr(config, "config_operation", None) != DELETE:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{config.name}: a null value cannot be set"
            )


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


def authorize_configs(
    broker: Broker, session: Session, operation: Operation, resource_type: int, name: str
) -> None:
    """Raise unless the client may describe, or change, the configs of a resource."""
    if resource_type == TOPIC:
        if not broker.allows(session, operation, ResourceType.TOPIC, name):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif resource_type == GROUP:
        if not broker.allows(session, operation, ResourceType.GROUP, name):
            raise RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        broker.check_cluster(session, operation)

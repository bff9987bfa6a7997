"""Changes of options at run time, as pure functions: values before, changes, values after.

They serve AlterConfigs (`replace_*`) and IncrementalAlterConfigs (`alter_*`), check everything that
can be checked without other brokers, and write nothing. A rejected change raises RequestError with
the code that the client gets: INVALID_CONFIG for a name or value, INVALID_REQUEST for a malformed
request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.config.broker import BrokerOptions
from barnabas.config.client_metrics import ClientMetricsOptions, parse_client_metrics
from barnabas.config.listeners import check_change
from barnabas.config.option import Kind, Option, Section, suggest
from barnabas.config.sources import BrokerSources
from barnabas.config.topic import TopicOptions, validate_overrides
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, RequestError

Checked = TypeVar("Checked")


class Operation(IntEnum):
    """What a change does; the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One change of one option; DELETE needs no value."""

    name: str
    operation: int
    value: str | None = None


def alter_topic(
    current: Mapping[str, str], changes: Iterable[Change], broker: BrokerOptions
) -> dict[str, str]:
    """Return a topic's overrides after these changes."""
    return replace_topic(_changed(current, changes, _topic_option), broker)


def replace_topic(values: Mapping[str, str | None], broker: BrokerOptions) -> dict[str, str]:
    """Check these overrides, which replace all previous ones, and return them."""
    _refuse_missing(values)
    return dict(_checked(lambda: validate_overrides(values, broker)).given)


def alter_broker(sources: BrokerSources, changes: Iterable[Change]) -> dict[str, str]:
    """Return this broker's dynamic values after these changes."""
    return replace_broker(sources, _changed(sources.broker, changes, _broker_option))


def replace_broker(sources: BrokerSources, values: Mapping[str, str | None]) -> dict[str, str]:
    """Check these values, which replace all previous ones of this broker, and return them."""
    present = _present(values)
    for name in present:
        if _broker_option(name).dynamic == "no":
            raise _invalid(f"{name}: cannot be changed while the broker runs")
    changed = _checked(lambda: sources.with_broker(present)).options
    _checked(lambda: check_change(sources.options.endpoints, changed.endpoints))
    return present


def alter_cluster(sources: BrokerSources, changes: Iterable[Change]) -> dict[str, str]:
    """Return the cluster's dynamic values after these changes."""
    return replace_cluster(sources, _changed(sources.cluster, changes, _broker_option))


def replace_cluster(sources: BrokerSources, values: Mapping[str, str | None]) -> dict[str, str]:
    """Check these values, which replace all previous ones of the cluster, and return them."""
    present = _present(values)
    for name in present:
        option = _broker_option(name)
        if option.dynamic == "no":
            raise _invalid(f"{name}: cannot be changed while brokers run")
        if option.dynamic == "broker" or name != option.name:
            raise _invalid(f"{name}: can only be changed per broker")
    _checked(lambda: sources.with_cluster(present))
    return present


def alter_client_metrics(
    name: str, current: Mapping[str, str], changes: Iterable[Change]
) -> dict[str, str]:
    """Return the options of a client-metrics resource after these changes."""
    return replace_client_metrics(name, _changed(current, changes, _client_metrics_option))


def replace_client_metrics(name: str, values: Mapping[str, str | None]) -> dict[str, str]:
    """Check these options, which replace all previous ones of the resource, and return them."""
    present = _present(values)
    parse_client_metrics(name, present)
    return present


def _changed(
    current: Mapping[str, str], changes: Iterable[Change], find: Callable[[str], Option]
) -> dict[str, str]:
    values = dict(current)
    seen: set[str] = set()
    for change in changes:
        if change.name in seen:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{change.name}: changed twice in one request"
            )
        seen.add(change.name)
        if change.operation == Operation.DELETE:
            values.pop(change.name, None)
            continue
        if change.value is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{change.name}: a value is required")
        if change.operation == Operation.SET:
            values[change.name] = change.value
        elif change.operation in (Operation.APPEND, Operation.SUBTRACT):
            values[change.name] = _list_change(values, change, find(change.name))
        else:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{change.name}: unknown operation {change.operation}"
            )
    return values


def _list_change(values: Mapping[str, str], change: Change, option: Option) -> str:
    """Append to or subtract from a list; an unset list starts from its default."""
    if option.kind is not Kind.LIST:
        raise _invalid(f"{change.name}: only lists can be appended to or subtracted from")
    default = option.text(option.default) or ""
    elements = _split(values.get(change.name, default))
    operands = _split(change.value or "")
    if change.operation == Operation.APPEND:
        elements += [element for element in operands if element not in elements]
    else:
        elements = [element for element in elements if element not in operands]
    return ",".join(elements)


def _split(text: str) -> list[str]:
    return [element for part in text.split(",") if (element := part.strip())]


def _topic_option(name: str) -> Option:
    return _known(name, TopicOptions.find(name), TopicOptions)


def _broker_option(name: str) -> Option:
    return _known(name, BrokerOptions.find(name), BrokerOptions)


def _client_metrics_option(name: str) -> Option:
    return _known(name, ClientMetricsOptions.find(name), ClientMetricsOptions)


def _known(name: str, option: Option | None, section: type[Section]) -> Option:
    if option is None:
        raise _invalid(f"{name}: no such option{suggest(name, section.options)}")
    return option


def _refuse_missing(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{name}: a value is required")


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    _refuse_missing(values)
    return {name: value for name, value in values.items() if value is not None}


def _checked(check: Callable[[], Checked]) -> Checked:
    """Return what the check returns; turn its ConfigError into INVALID_CONFIG."""
    try:
        return check()
    except ConfigError as error:
        raise _invalid(str(error)) from error


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_CONFIG, message)

"""What a `client-metrics` resource asks clients for: the options of KIP-714's subscriptions.

    barnabas configs alter --client-metrics watch --set metrics=* --set interval.ms=60000 \
        --set match=client_software_name=librdkafka

A resource without options does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.option import Section, option
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, InvalidValueError, RequestError
from barnabas.model.patterns import Pattern, compile_pattern

ALL_METRICS = "*"
INTERVAL_MS_DEFAULT = 300_000
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000

MATCHED = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What `match` can name of a client."""


class ClientMetricsOptions(Section):
    """One subscription to metrics of clients."""

    patterns: Mapping[str, Pattern]
    """The parsed `match`: each pattern must match the whole of what it is about."""

    metrics: tuple[str, ...] = option(
        "metrics",
        "list",
        default=(),
        dynamic="cluster",
        doc="Prefixes of the metrics' names; * stands for all.",
    )
    interval_ms: int = option(
        "interval.ms",
        "int",
        default=INTERVAL_MS_DEFAULT,
        dynamic="cluster",
        doc="How often clients push, 100 to 3600000.",
    )
    match: tuple[str, ...] = option(
        "match",
        "list",
        default=(),
        dynamic="cluster",
        doc=f"Which clients: NAME=PATTERN, all of which must match; names: {', '.join(MATCHED)}.",
    )

    def _derive(self, attributes: dict[str, object]) -> None:
        attributes["patterns"] = dict(map(_parse_match, filter(None, self.match)))


def parse_client_metrics(name: str, values: Mapping[str, str]) -> ClientMetricsOptions:
    """Return a subscription; raise RequestError with Kafka's code if it is invalid."""
    if not name:
        raise _refused("the name of a client-metrics resource must not be empty")
    for each in values:
        if ClientMetricsOptions.find(each) is None:
            known = ", ".join(ClientMetricsOptions.options)
            raise _refused(f"{each}: not an option of client-metrics; these are {known}")
    try:
        options = ClientMetricsOptions.parse(values)
    except ConfigError as failure:
        raise RequestError(ErrorCode.INVALID_CONFIG, str(failure)) from failure
    if not INTERVAL_MS_MIN <= options.interval_ms <= INTERVAL_MS_MAX:
        raise _refused(
            f"interval.ms={options.interval_ms}: must be {INTERVAL_MS_MIN} to {INTERVAL_MS_MAX} "
            "(1 hour)"
        )
    return options


def _parse_match(text: str) -> tuple[str, Pattern]:
    name, equals, pattern = (part.strip() for part in text.partition("="))
    if not equals or name not in MATCHED:
        raise ConfigError(f"match={text}: must be NAME=PATTERN, with one of {', '.join(MATCHED)}")
    try:
        return name, compile_pattern(pattern)
    except InvalidValueError as failure:
        raise ConfigError(f"match={text}: {failure}") from failure


def _refused(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)

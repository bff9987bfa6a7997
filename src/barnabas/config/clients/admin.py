"""Options of admin clients. Defaults are those of Kafka 3.9, and so of kafka-python."""

from __future__ import annotations

from barnabas.config.clients.common import CommonOptions
from barnabas.config.option import option

RETRIES_MAX = 2_147_483_647


class AdminOptions(CommonOptions):
    """What admin clients add to the options of all clients."""

    default_api_timeout_ms: int = option(
        "default.api.timeout.ms",
        "int",
        default=60_000,
        at_least=1,
        doc="Longest that one call takes, with all its requests and attempts, unless it says so.",
    )
    retries: int = option(
        "retries",
        "int",
        default=RETRIES_MAX,
        at_least=0,
        reserved="a request is sent again as long as there is time",
        doc="Most times that a failed request is sent again.",
    )
    bootstrap_controllers: tuple[str, ...] = option(
        "bootstrap.controllers",
        "list",
        default=(),
        refused="controllers are reached through brokers: name these in bootstrap.servers",
        doc="Addresses of KRaft controllers to ask in place of brokers.",
    )

"""Options of admin clients. Defaults are those of Kafka 3.9, and of kafka-python."""

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
        doc="Default timeout of a call, including all its requests and retries.",
    )
    retries: int = option(
        "retries",
        "int",
        default=RETRIES_MAX,
        at_least=0,
        reserved="requests are retried until the timeout",
        doc="Maximum number of retries of a failed request.",
    )
    bootstrap_controllers: tuple[str, ...] = option(
        "bootstrap.controllers",
        "list",
        default=(),
        refused="controllers are reached through brokers; use bootstrap.servers",
        doc="Addresses of KRaft controllers to use instead of brokers.",
    )

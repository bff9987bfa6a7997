"""How a broker logs in to others: by the credentials of its own listener's JAAS entry."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.client.authentication import Converse
from barnabas.client.sasl.conversations import with_password, with_ticket, with_token
from barnabas.config.broker import BrokerOptions, listener_prefix
from barnabas.config.jaas import JaasEntry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.scram_credentials import MECHANISMS as SCRAM

OPTION = "sasl.mechanism.inter.broker.protocol"


def broker_login(
    listener: str,
    mechanism: str,
    entry: JaasEntry | None,
    options: BrokerOptions,
    random: Callable[[], float],
    now_ms: Callable[[], int],
) -> Converse:
    """Return a function that begins a login; raise ConfigError if the entry has no credentials.

    `options` are those of the listener and mechanism.
    """
    jaas = entry.options if entry is not None else {}
    where = f"{listener_prefix(listener)}{mechanism.lower()}.sasl.jaas.config"
    if mechanism == "OAUTHBEARER":
        return with_token(options, jaas, where, random, now_ms)
    if mechanism == "GSSAPI":
        return with_ticket(options, jaas, where)
    if mechanism == "PLAIN" or mechanism in SCRAM:
        if "username" not in jaas or "password" not in jaas:
            raise ConfigError(
                f"{where}: needs username and password, with which brokers log in to each other "
                f"({OPTION})"
            )
        return with_password(mechanism, jaas["username"], jaas["password"], jaas)
    raise ConfigError(
        f"{OPTION}={mechanism}: brokers log in to each other on listener {listener}; must be "
        f"PLAIN, {', '.join(SCRAM)}, OAUTHBEARER or GSSAPI"
    )

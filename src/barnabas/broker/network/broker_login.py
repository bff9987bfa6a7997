"""How a broker logs in to others: by the credentials of its own listener's JAAS entry."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial

from barnabas.client.authentication import Mechanism
from barnabas.client.sasl.oauthbearer import OAuthBearer
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.config.jaas import JaasEntry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.scram_credentials import MECHANISMS as SCRAM

OPTION = "sasl.mechanism.inter.broker.protocol"
UNSECURED_SUBJECT = "unsecuredLoginStringClaim_sub"
UNSECURED_S = 3600


def broker_login(
    listener: str, mechanism: str, entry: JaasEntry | None, now_ms: Callable[[], int]
) -> Callable[[], Mechanism]:
    """Return a function that begins a login; raise ConfigError if the entry has no credentials."""
    options = entry.options if entry is not None else {}
    if mechanism == "OAUTHBEARER" and UNSECURED_SUBJECT in options:
        return partial(OAuthBearer, partial(_unsecured_token, options[UNSECURED_SUBJECT], now_ms))
    if mechanism == "PLAIN" or mechanism in SCRAM:
        if "username" not in options or "password" not in options:
            raise ConfigError(
                f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config: needs "
                f"username and password, with which brokers log in to each other ({OPTION})"
            )
        if mechanism == "PLAIN":
            return partial(Plain, options["username"], options["password"])
        return partial(Scram, mechanism, options["username"], options["password"])
    raise ConfigError(
        f"{OPTION}={mechanism}: brokers log in to each other on listener {listener}; must be "
        f"PLAIN or {' or '.join(SCRAM)}"
    )


def _unsecured_token(subject: str, now_ms: Callable[[], int]) -> str:
    """Return a token that nobody has signed, which only brokers that were told so accept."""
    now_s = now_ms() // 1000
    parts = {"alg": "none"}, {"sub": subject, "iat": now_s, "exp": now_s + UNSECURED_S}
    encoded = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    ]
    return ".".join([*encoded, ""])

"""From options and a JAAS entry to logins: for clients, and for brokers that log in to others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.client.authentication import Converse
from barnabas.client.sasl.bearer_token import (
    UNSECURED,
    BearerToken,
    UnsecuredTokens,
    extensions_of,
    read_token,
)
from barnabas.client.sasl.cached_token import CachedToken, RefreshRules, RetryRules
from barnabas.client.sasl.oauthbearer import OAuthBearer
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.client.tls_context import tls_context
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.security import SecurityOptions
from barnabas.config.login import LoginOptions
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    import ssl

HANDLER = "sasl.login.callback.handler.class"
ENDPOINT_HANDLER = "OAuthBearerLoginCallbackHandler"
UNSECURED_HANDLER = "OAuthBearerUnsecuredLoginCallbackHandler"


def wall_clock_ms() -> int:
    """Return the time of day, which the ends of tokens are compared with."""
    return int(time.time() * 1000)


def with_password(
    mechanism: str, username: str, password: str, jaas: Mapping[str, str]
) -> Converse:
    """Return logins by name and password: PLAIN, SCRAM, and delegation tokens."""
    if mechanism == "PLAIN":
        return lambda host: Plain(username, password)
    by_token = jaas.get("tokenauth", "").lower() == "true"
    return lambda host: Scram(mechanism, username, password, os.urandom, by_token=by_token)


def with_token(
    options: LoginOptions,
    jaas: Mapping[str, str],
    option: str,
    random: Callable[[], float],
    now_ms: Callable[[], int] = wall_clock_ms,
) -> Converse:
    """Return logins by bearer tokens; raise ConfigError if nothing issues them.

    `option` names the JAAS entry.
    """
    fetch, prefix = _issuer(options, jaas, option, now_ms)
    cached = CachedToken(
        fetch,
        RefreshRules(
            options.sasl_login_refresh_window_factor,
            options.sasl_login_refresh_window_jitter,
            options.sasl_login_refresh_min_period_seconds,
            options.sasl_login_refresh_buffer_seconds,
        ),
        RetryRules(options.sasl_login_retry_backoff_ms, options.sasl_login_retry_backoff_max_ms),
        now_ms,
        random,
        extensions_of(jaas, prefix, option),
    )
    return lambda host: OAuthBearer(cached)


def with_ticket(
    options: LoginOptions,
    jaas: Mapping[str, str],
    option: str,
    *,
    domain: str | None = None,
    name: object = None,
) -> Converse:
    """Return logins by Kerberos; `domain` and `name` replace the host that is dialled."""
    # Imported here: few use Kerberos.
    from barnabas.client.sasl.gssapi import Gssapi, kerberos

    new_context = kerberos(jaas, option, options.sasl_kerberos_service_name, name)
    return lambda host: Gssapi(partial(new_context, domain or host))


def _issuer(
    options: LoginOptions, jaas: Mapping[str, str], option: str, now_ms: Callable[[], int]
) -> tuple[Callable[[], BearerToken], str]:
    """Return what fetches a token, and how names of extensions begin."""
    handler = (options.sasl_login_callback_handler_class or "").rpartition(".")[2]
    url = options.sasl_oauthbearer_token_endpoint_url
    if handler not in ("", ENDPOINT_HANDLER, UNSECURED_HANDLER):
        raise ConfigError(
            f"{HANDLER}={options.sasl_login_callback_handler_class}: must be "
            f"…{ENDPOINT_HANDLER} or …{UNSECURED_HANDLER}"
        )
    if handler == UNSECURED_HANDLER or (
        handler == "" and not url and any(name.startswith(UNSECURED) for name in jaas)
    ):
        unsecured = UnsecuredTokens(jaas, option)
        return lambda: unsecured.issue(now_ms()), "unsecuredLoginExtension_"
    if not url:
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url: required for OAUTHBEARER, with clientId and "
            f"clientSecret in {option}"
        )
    # Imported here: few use an endpoint.
    from barnabas.client.sasl.token_endpoint import token_endpoint

    endpoint = token_endpoint(
        url,
        jaas,
        option,
        connect_ms_max=options.sasl_login_connect_timeout_ms,
        read_ms_max=options.sasl_login_read_timeout_ms,
        tls=_tls(jaas) if url.startswith("https:") else None,
    )
    subject = options.sasl_oauthbearer_sub_claim_name
    return lambda: read_token(endpoint.fetch(), subject), "extension_"


def _tls(jaas: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context for an endpoint, from ssl.… of the JAAS entry.

    The brokers' own ssl.… options do not count, as in Kafka: they may trust a private CA alone.
    """
    given = {name: value for name, value in jaas.items() if name.startswith("ssl.")}
    return tls_context(parse_client_options(SecurityOptions, given))

"""How a client logs in, or a broker to others: bearer tokens and Kerberos."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved


class LoginOptions(Section):
    """Logins: bearer tokens and Kerberos, beside the JAAS entry."""

    sasl_login_callback_handler_class: str | None = option(
        "sasl.login.callback.handler.class",
        "class",
        default=None,
        doc="Where OAUTHBEARER gets its tokens: …OAuthBearerLoginCallbackHandler from "
        "sasl.oauthbearer.token.endpoint.url, which alone will do, too; "
        "…OAuthBearerUnsecuredLoginCallbackHandler makes unsigned ones, for tests.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = option(
        "sasl.oauthbearer.token.endpoint.url",
        "string",
        default=None,
        doc="URL that issues bearer tokens for clientId and clientSecret of the JAAS entry (https "
        "or http), or a file with a token.",
    )
    sasl_oauthbearer_sub_claim_name: str = option(
        "sasl.oauthbearer.sub.claim.name",
        "string",
        default="sub",
        doc="Claim that contains the user name.",
    )
    sasl_login_connect_timeout_ms: int | None = option(
        "sasl.login.connect.timeout.ms",
        "int",
        default=None,
        at_least=1,
        doc="Connect timeout towards the token endpoint; unset: 10 seconds.",
    )
    sasl_login_read_timeout_ms: int | None = option(
        "sasl.login.read.timeout.ms",
        "int",
        default=None,
        at_least=1,
        doc="Read timeout towards the token endpoint; unset: 10 seconds.",
    )
    sasl_login_retry_backoff_ms: int = option(
        "sasl.login.retry.backoff.ms",
        "long",
        default=100,
        at_least=1,
        doc="Initial backoff after the token endpoint failed.",
    )
    sasl_login_retry_backoff_max_ms: int = option(
        "sasl.login.retry.backoff.max.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="How long to retry the token endpoint.",
    )
    sasl_login_refresh_window_factor: float = option(
        "sasl.login.refresh.window.factor",
        "double",
        default=0.8,
        at_least=0.5,
        at_most=1,
        dynamic="broker",
        doc="Fraction of a token's lifetime after which it is refreshed.",
    )
    sasl_login_refresh_window_jitter: float = option(
        "sasl.login.refresh.window.jitter",
        "double",
        default=0.05,
        at_least=0,
        at_most=0.25,
        dynamic="broker",
        doc="Maximum random jitter added to that fraction.",
    )
    sasl_login_refresh_min_period_seconds: int = option(
        "sasl.login.refresh.min.period.seconds",
        "short",
        default=60,
        at_least=0,
        at_most=900,
        dynamic="broker",
        doc="Minimum time between token refreshes.",
    )
    sasl_login_refresh_buffer_seconds: int = option(
        "sasl.login.refresh.buffer.seconds",
        "short",
        default=300,
        at_least=0,
        at_most=3600,
        dynamic="broker",
        doc="How long before its expiry a token must be refreshed.",
    )
    sasl_kerberos_service_name: str | None = option(
        "sasl.kerberos.service.name",
        "string",
        default=None,
        dynamic="broker",
        doc="Kerberos service name of the brokers; unset: serviceName of the JAAS entry, or kafka.",
    )
    _without_effect = reserved(
        """
        sasl.login.class                          class   -               no      JAVA     Class that logs in.
        sasl.client.callback.handler.class        class   -               no      JAVA     Class that supplies credentials to the client.
        sasl.kerberos.kinit.cmd                   string  /usr/bin/kinit  broker  TICKETS  Path to the kinit command.
        sasl.kerberos.min.time.before.relogin     long    60000           broker  TICKETS  Minimum time between logins.
        sasl.kerberos.ticket.renew.jitter         double  0.05            broker  TICKETS  Random jitter added to the renewal time.
        sasl.kerberos.ticket.renew.window.factor  double  0.8             broker  TICKETS  Fraction of a ticket's lifetime after which it is renewed.
        """  # noqa: E501
    )

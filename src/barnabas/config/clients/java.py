"""Options that only Java clients need: accepted here, so that settings can be shared."""

from __future__ import annotations

from barnabas.config.clients.options import ClientSection
from barnabas.config.option import option
from barnabas.config.reasons import JAVA, KERBEROS

FROM_PROVIDER = "tokens come from sasl_oauth_token_provider"


class JavaOptions(ClientSection):
    """What is accepted and has no effect."""

    ssl_provider: str | None = option(
        "ssl.provider", "string", default=None, reserved=JAVA, doc="Implementation of TLS."
    )
    ssl_keymanager_algorithm: str = option(
        "ssl.keymanager.algorithm",
        "string",
        default="SunX509",
        reserved=JAVA,
        doc="Algorithm that finds keys.",
    )
    ssl_trustmanager_algorithm: str = option(
        "ssl.trustmanager.algorithm",
        "string",
        default="PKIX",
        reserved=JAVA,
        doc="Algorithm that finds trust.",
    )
    ssl_secure_random_implementation: str | None = option(
        "ssl.secure.random.implementation",
        "string",
        default=None,
        reserved=JAVA,
        doc="Source of random numbers.",
    )
    ssl_engine_factory_class: str | None = option(
        "ssl.engine.factory.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that makes TLS engines.",
    )
    security_providers: str | None = option(
        "security.providers",
        "string",
        default=None,
        reserved=JAVA,
        doc="Classes that implement algorithms.",
    )
    sasl_login_callback_handler_class: str | None = option(
        "sasl.login.callback.handler.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that gives credentials to the login.",
    )
    sasl_client_callback_handler_class: str | None = option(
        "sasl.client.callback.handler.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that gives credentials to the client.",
    )
    sasl_login_class: str | None = option(
        "sasl.login.class", "class", default=None, reserved=JAVA, doc="Class that logs in."
    )
    auto_include_jmx_reporter: bool = option(
        "auto.include.jmx.reporter",
        "boolean",
        default=True,
        reserved=JAVA,
        doc="Whether metrics are shown by JMX.",
    )
    sasl_login_refresh_window_factor: float = option(
        "sasl.login.refresh.window.factor",
        "double",
        default=0.8,
        reserved=FROM_PROVIDER,
        doc="Share of a token's life after which it is refreshed.",
    )
    sasl_login_refresh_window_jitter: float = option(
        "sasl.login.refresh.window.jitter",
        "double",
        default=0.05,
        reserved=FROM_PROVIDER,
        doc="Random part that is added to that share.",
    )
    sasl_login_refresh_min_period_seconds: int = option(
        "sasl.login.refresh.min.period.seconds",
        "short",
        default=60,
        reserved=FROM_PROVIDER,
        doc="Shortest time between refreshes of a token.",
    )
    sasl_login_refresh_buffer_seconds: int = option(
        "sasl.login.refresh.buffer.seconds",
        "short",
        default=300,
        reserved=FROM_PROVIDER,
        doc="Time before expiry that a refresh of a token keeps free.",
    )
    sasl_login_connect_timeout_ms: int | None = option(
        "sasl.login.connect.timeout.ms",
        "int",
        default=None,
        reserved=FROM_PROVIDER,
        doc="Longest wait for a connection to the token service.",
    )
    sasl_login_read_timeout_ms: int | None = option(
        "sasl.login.read.timeout.ms",
        "int",
        default=None,
        reserved=FROM_PROVIDER,
        doc="Longest wait for an answer of the token service.",
    )
    sasl_login_retry_backoff_ms: int = option(
        "sasl.login.retry.backoff.ms",
        "long",
        default=100,
        reserved=FROM_PROVIDER,
        doc="First pause after a failed login.",
    )
    sasl_login_retry_backoff_max_ms: int = option(
        "sasl.login.retry.backoff.max.ms",
        "long",
        default=10_000,
        reserved=FROM_PROVIDER,
        doc="Longest pause after failed logins.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        "string",
        default=None,
        reserved=FROM_PROVIDER,
        doc="Address of the keys that sign tokens.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "long",
        default=3_600_000,
        reserved=FROM_PROVIDER,
        doc="How often these keys are fetched anew.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "long",
        default=100,
        reserved=FROM_PROVIDER,
        doc="First pause after failing to fetch them.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "long",
        default=10_000,
        reserved=FROM_PROVIDER,
        doc="Longest pause after failing to fetch them.",
    )
    sasl_oauthbearer_clock_skew_seconds: int = option(
        "sasl.oauthbearer.clock.skew.seconds",
        "int",
        default=30,
        reserved=FROM_PROVIDER,
        doc="Difference of clocks that is tolerated.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = option(
        "sasl.oauthbearer.expected.audience",
        "list",
        default=None,
        reserved=FROM_PROVIDER,
        doc="Audiences of which a token must name one.",
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        "sasl.oauthbearer.expected.issuer",
        "string",
        default=None,
        reserved=FROM_PROVIDER,
        doc="Issuer that a token must name.",
    )
    sasl_oauthbearer_scope_claim_name: str = option(
        "sasl.oauthbearer.scope.claim.name",
        "string",
        default="scope",
        reserved=FROM_PROVIDER,
        doc="Claim that holds the scopes.",
    )
    sasl_oauthbearer_sub_claim_name: str = option(
        "sasl.oauthbearer.sub.claim.name",
        "string",
        default="sub",
        reserved=FROM_PROVIDER,
        doc="Claim that holds the user.",
    )
    sasl_kerberos_service_name: str = option(
        "sasl.kerberos.service.name",
        "string",
        default="kafka",
        reserved=KERBEROS,
        doc="Service name of brokers.",
    )
    sasl_kerberos_domain_name: str | None = option(
        "sasl.kerberos.domain.name",
        "string",
        default=None,
        reserved=KERBEROS,
        doc="Domain name of brokers.",
    )
    sasl_kerberos_kinit_cmd: str = option(
        "sasl.kerberos.kinit.cmd",
        "string",
        default="/usr/bin/kinit",
        reserved=KERBEROS,
        doc="Path of kinit.",
    )
    sasl_kerberos_min_time_before_relogin: int = option(
        "sasl.kerberos.min.time.before.relogin",
        "long",
        default=60_000,
        reserved=KERBEROS,
        doc="Shortest time between logins.",
    )
    sasl_kerberos_ticket_renew_jitter: float = option(
        "sasl.kerberos.ticket.renew.jitter",
        "double",
        default=0.05,
        reserved=KERBEROS,
        doc="Random part of the renewal time.",
    )
    sasl_kerberos_ticket_renew_window_factor: float = option(
        "sasl.kerberos.ticket.renew.window.factor",
        "double",
        default=0.8,
        reserved=KERBEROS,
        doc="Share of a ticket's life after which it is renewed.",
    )

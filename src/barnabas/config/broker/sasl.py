"""SASL: mechanisms, logins, Kerberos and bearer tokens."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option
from barnabas.config.reasons import JAVA, KERBEROS, KRAFT, SECURITY


class SaslOptions(Section):
    """SASL: mechanisms, logins, Kerberos and bearer tokens."""

    sasl_enabled_mechanisms: tuple[str, ...] = option(
        "sasl.enabled.mechanisms",
        "list",
        default=("GSSAPI",),
        dynamic="broker",
        reserved=SECURITY,
        doc="Mechanisms that clients may use.",
    )
    sasl_mechanism_inter_broker_protocol: str = option(
        "sasl.mechanism.inter.broker.protocol",
        "string",
        default="GSSAPI",
        dynamic="broker",
        reserved=SECURITY,
        doc="Mechanism among brokers.",
    )
    sasl_mechanism_controller_protocol: str = option(
        "sasl.mechanism.controller.protocol",
        "string",
        default="GSSAPI",
        reserved=KRAFT,
        doc="Mechanism towards controllers.",
    )
    sasl_jaas_config: Password | None = option(
        "sasl.jaas.config",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="Login modules and their credentials, mostly per listener and mechanism.",
    )
    sasl_server_max_receive_size: int = option(
        "sasl.server.max.receive.size",
        "int",
        default=524_288,
        reserved=SECURITY,
        doc="Largest frame before a client has authenticated.",
    )
    sasl_server_callback_handler_class: str | None = option(
        "sasl.server.callback.handler.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that checks credentials.",
    )
    sasl_client_callback_handler_class: str | None = option(
        "sasl.client.callback.handler.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that gives credentials to the client side.",
    )
    sasl_login_callback_handler_class: str | None = option(
        "sasl.login.callback.handler.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that gives credentials to the login.",
    )
    sasl_login_class: str | None = option(
        "sasl.login.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that logs in.",
    )
    sasl_login_refresh_buffer_seconds: int = option(
        "sasl.login.refresh.buffer.seconds",
        "short",
        default=300,
        at_least=0,
        at_most=3600,
        dynamic="broker",
        reserved=SECURITY,
        doc="Time before expiry that a refresh of a login keeps free.",
    )
    sasl_login_refresh_min_period_seconds: int = option(
        "sasl.login.refresh.min.period.seconds",
        "short",
        default=60,
        at_least=0,
        at_most=900,
        dynamic="broker",
        reserved=SECURITY,
        doc="Shortest time between refreshes of a login.",
    )
    sasl_login_refresh_window_factor: float = option(
        "sasl.login.refresh.window.factor",
        "double",
        default=0.8,
        at_least=0.5,
        at_most=1,
        dynamic="broker",
        reserved=SECURITY,
        doc="Share of a credential's life after which it is refreshed.",
    )
    sasl_login_refresh_window_jitter: float = option(
        "sasl.login.refresh.window.jitter",
        "double",
        default=0.05,
        at_least=0,
        at_most=0.25,
        dynamic="broker",
        reserved=SECURITY,
        doc="Random part that is added to that share.",
    )
    sasl_login_connect_timeout_ms: int | None = option(
        "sasl.login.connect.timeout.ms",
        "int",
        default=None,
        reserved=SECURITY,
        doc="Longest wait for a connection to the token service.",
    )
    sasl_login_read_timeout_ms: int | None = option(
        "sasl.login.read.timeout.ms",
        "int",
        default=None,
        reserved=SECURITY,
        doc="Longest wait for an answer of the token service.",
    )
    sasl_login_retry_backoff_ms: int = option(
        "sasl.login.retry.backoff.ms",
        "long",
        default=100,
        reserved=SECURITY,
        doc="First pause after a failed login.",
    )
    sasl_login_retry_backoff_max_ms: int = option(
        "sasl.login.retry.backoff.max.ms",
        "long",
        default=10_000,
        reserved=SECURITY,
        doc="Longest pause after failed logins.",
    )
    sasl_kerberos_service_name: str | None = option(
        "sasl.kerberos.service.name",
        "string",
        default=None,
        dynamic="broker",
        reserved=KERBEROS,
        doc="Service name of brokers.",
    )
    sasl_kerberos_kinit_cmd: str = option(
        "sasl.kerberos.kinit.cmd",
        "string",
        default="/usr/bin/kinit",
        dynamic="broker",
        reserved=KERBEROS,
        doc="Path of kinit.",
    )
    sasl_kerberos_min_time_before_relogin: int = option(
        "sasl.kerberos.min.time.before.relogin",
        "long",
        default=60_000,
        dynamic="broker",
        reserved=KERBEROS,
        doc="Shortest time between logins.",
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = option(
        "sasl.kerberos.principal.to.local.rules",
        "list",
        default=("DEFAULT",),
        dynamic="broker",
        reserved=KERBEROS,
        doc="Rules from principals to short names.",
    )
    sasl_kerberos_ticket_renew_jitter: float = option(
        "sasl.kerberos.ticket.renew.jitter",
        "double",
        default=0.05,
        dynamic="broker",
        reserved=KERBEROS,
        doc="Random part of the renewal time.",
    )
    sasl_kerberos_ticket_renew_window_factor: float = option(
        "sasl.kerberos.ticket.renew.window.factor",
        "double",
        default=0.8,
        dynamic="broker",
        reserved=KERBEROS,
        doc="Share of a ticket's life after which it is renewed.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        "string",
        default=None,
        reserved=SECURITY,
        doc="Address of the keys that sign bearer tokens.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "long",
        default=3_600_000,
        reserved=SECURITY,
        doc="How often these keys are fetched anew.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "long",
        default=100,
        reserved=SECURITY,
        doc="First pause after failing to fetch them.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "long",
        default=10_000,
        reserved=SECURITY,
        doc="Longest pause after failing to fetch them.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = option(
        "sasl.oauthbearer.token.endpoint.url",
        "string",
        default=None,
        reserved=SECURITY,
        doc="Address where bearer tokens are obtained.",
    )
    sasl_oauthbearer_clock_skew_seconds: int = option(
        "sasl.oauthbearer.clock.skew.seconds",
        "int",
        default=30,
        reserved=SECURITY,
        doc="Difference of clocks that is tolerated.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = option(
        "sasl.oauthbearer.expected.audience",
        "list",
        default=None,
        reserved=SECURITY,
        doc="Audiences of which a token must name one.",
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        "sasl.oauthbearer.expected.issuer",
        "string",
        default=None,
        reserved=SECURITY,
        doc="Issuer that a token must name.",
    )
    sasl_oauthbearer_scope_claim_name: str = option(
        "sasl.oauthbearer.scope.claim.name",
        "string",
        default="scope",
        reserved=SECURITY,
        doc="Claim that holds the scopes.",
    )
    sasl_oauthbearer_sub_claim_name: str = option(
        "sasl.oauthbearer.sub.claim.name",
        "string",
        default="sub",
        reserved=SECURITY,
        doc="Claim that holds the user.",
    )

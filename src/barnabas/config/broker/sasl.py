"""SASL: mechanisms, logins, Kerberos and bearer tokens."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option, reserved


class SaslOptions(Section):
    """SASL: mechanisms, logins, Kerberos and bearer tokens."""

    sasl_enabled_mechanisms: tuple[str, ...] = option(
        "sasl.enabled.mechanisms",
        "list",
        default=("GSSAPI",),
        dynamic="broker",
        doc="Enabled SASL mechanisms, usually set per listener.",
    )
    sasl_mechanism_inter_broker_protocol: str = option(
        "sasl.mechanism.inter.broker.protocol",
        "string",
        default="GSSAPI",
        dynamic="broker",
        doc="SASL mechanism between brokers. The control plane may have another, under the name "
        "listener.name.<listener>.sasl.mechanism.inter.broker.protocol.",
    )
    sasl_jaas_config: Password | None = option(
        "sasl.jaas.config",
        "password",
        default=None,
        dynamic="broker",
        doc="Login module and credentials of one mechanism of a listener; acts only under the name "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config.",
    )
    java_security_auth_login_config: str | None = option(
        "java.security.auth.login.config",
        "string",
        default=None,
        doc="File with the login modules of listeners that have no sasl.jaas.config, in a section "
        "<listener>.KafkaServer or KafkaServer, and with the broker's login to ZooKeeper. In "
        "Kafka it is a property of the JVM.",
    )
    sasl_server_max_receive_size: int = option(
        "sasl.server.max.receive.size",
        "int",
        default=524_288,
        at_least=1,
        doc="Largest request accepted before a client has authenticated.",
    )
    sasl_server_callback_handler_class: str | None = option(
        "sasl.server.callback.handler.class",
        "class",
        default=None,
        doc="How bearer tokens are checked: …OAuthBearerValidatorCallbackHandler for signed ones, "
        "…OAuthBearerUnsecuredValidatorCallbackHandler to accept unsigned ones, in tests.",
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = option(
        "sasl.kerberos.principal.to.local.rules",
        "list",
        default=("DEFAULT",),
        dynamic="broker",
        doc="Rules that map principals to short names.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        "string",
        default=None,
        doc="URL of the keys that sign bearer tokens (JWKS): https, http or file.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "long",
        default=3_600_000,
        at_least=1,
        doc="How often these keys are refreshed.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "long",
        default=100,
        at_least=1,
        doc="Initial backoff after a failed refresh.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="Maximum backoff after failed refreshes.",
    )
    sasl_oauthbearer_clock_skew_seconds: int = option(
        "sasl.oauthbearer.clock.skew.seconds",
        "int",
        default=30,
        at_least=0,
        doc="Tolerated clock skew.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = option(
        "sasl.oauthbearer.expected.audience",
        "list",
        default=None,
        doc="Accepted audiences; a token must name one of them.",
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        "sasl.oauthbearer.expected.issuer",
        "string",
        default=None,
        doc="Required token issuer.",
    )
    sasl_oauthbearer_scope_claim_name: str = option(
        "sasl.oauthbearer.scope.claim.name",
        "string",
        default="scope",
        doc="Claim that contains the scopes.",
    )
    _without_effect = reserved(
        """
        sasl.mechanism.controller.protocol  string  GSSAPI  no  KRAFT  SASL mechanism towards controllers.
        """  # noqa: E501
    )

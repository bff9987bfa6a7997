"""SASL: mechanisms, logins, Kerberos and bearer tokens."""

from __future__ import annotations

from barnabas.config.option import Section, reserved


class SaslOptions(Section):
    """SASL: mechanisms, logins, Kerberos and bearer tokens."""

    _without_effect = reserved(
        """
        sasl.enabled.mechanisms                              list            GSSAPI          broker  SECURITY  Enabled SASL mechanisms.
        sasl.mechanism.inter.broker.protocol                 string          GSSAPI          broker  SECURITY  SASL mechanism between brokers.
        sasl.mechanism.controller.protocol                   string          GSSAPI          no      KRAFT     SASL mechanism towards controllers.
        sasl.jaas.config                                     password        -               broker  SECURITY  Login modules and credentials, usually set per listener and mechanism.
        sasl.server.max.receive.size                         int             524288          no      SECURITY  Largest request accepted before a client has authenticated.
        sasl.server.callback.handler.class                   class           -               no      JAVA      Class that verifies credentials.
        sasl.client.callback.handler.class                   class           -               no      JAVA      Class that supplies credentials to the client.
        sasl.login.callback.handler.class                    class           -               no      JAVA      Class that supplies credentials to the login.
        sasl.login.class                                     class           -               no      JAVA      Class that logs in.
        sasl.login.refresh.buffer.seconds                    short:0..3600   300             broker  SECURITY  How long before expiry a login must be refreshed.
        sasl.login.refresh.min.period.seconds                short:0..900    60              broker  SECURITY  Minimum time between login refreshes.
        sasl.login.refresh.window.factor                     double:0.5..1   0.8             broker  SECURITY  Fraction of a credential's lifetime after which it is refreshed.
        sasl.login.refresh.window.jitter                     double:0..0.25  0.05            broker  SECURITY  Maximum random jitter added to that fraction.
        sasl.login.connect.timeout.ms                        int             -               no      SECURITY  Connect timeout towards the token service.
        sasl.login.read.timeout.ms                           int             -               no      SECURITY  Read timeout towards the token service.
        sasl.login.retry.backoff.ms                          long            100             no      SECURITY  Initial backoff after a failed login.
        sasl.login.retry.backoff.max.ms                      long            10000           no      SECURITY  Maximum backoff after failed logins.
        sasl.kerberos.service.name                           string          -               broker  KERBEROS  Kerberos service name of the brokers.
        sasl.kerberos.kinit.cmd                              string          /usr/bin/kinit  broker  KERBEROS  Path to the kinit command.
        sasl.kerberos.min.time.before.relogin                long            60000           broker  KERBEROS  Minimum time between logins.
        sasl.kerberos.principal.to.local.rules               list            DEFAULT         broker  KERBEROS  Rules that map principals to short names.
        sasl.kerberos.ticket.renew.jitter                    double          0.05            broker  KERBEROS  Random jitter added to the renewal time.
        sasl.kerberos.ticket.renew.window.factor             double          0.8             broker  KERBEROS  Fraction of a ticket's lifetime after which it is renewed.
        sasl.oauthbearer.jwks.endpoint.url                   string          -               no      SECURITY  URL of the keys that sign bearer tokens (JWKS).
        sasl.oauthbearer.jwks.endpoint.refresh.ms            long            3600000         no      SECURITY  How often these keys are refreshed.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long            100             no      SECURITY  Initial backoff after a failed refresh.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long            10000           no      SECURITY  Maximum backoff after failed refreshes.
        sasl.oauthbearer.token.endpoint.url                  string          -               no      SECURITY  URL that issues bearer tokens.
        sasl.oauthbearer.clock.skew.seconds                  int             30              no      SECURITY  Tolerated clock skew.
        sasl.oauthbearer.expected.audience                   list            -               no      SECURITY  Accepted audiences; a token must name one of them.
        sasl.oauthbearer.expected.issuer                     string          -               no      SECURITY  Required token issuer.
        sasl.oauthbearer.scope.claim.name                    string          scope           no      SECURITY  Claim that contains the scopes.
        sasl.oauthbearer.sub.claim.name                      string          sub             no      SECURITY  Claim that contains the user name.
        """  # noqa: E501
    )

"""SASL: mechanisms, logins, Kerberos and bearer tokens."""

from __future__ import annotations

from barnabas.config.option import Section, reserved


class SaslOptions(Section):
    """SASL: mechanisms, logins, Kerberos and bearer tokens."""

    _without_effect = reserved(
        """
        sasl.enabled.mechanisms                              list            GSSAPI          broker  SECURITY  Mechanisms that clients may use.
        sasl.mechanism.inter.broker.protocol                 string          GSSAPI          broker  SECURITY  Mechanism among brokers.
        sasl.mechanism.controller.protocol                   string          GSSAPI          no      KRAFT     Mechanism towards controllers.
        sasl.jaas.config                                     password        -               broker  SECURITY  Login modules and their credentials, mostly per listener and mechanism.
        sasl.server.max.receive.size                         int             524288          no      SECURITY  Largest frame before a client has authenticated.
        sasl.server.callback.handler.class                   class           -               no      JAVA      Class that checks credentials.
        sasl.client.callback.handler.class                   class           -               no      JAVA      Class that gives credentials to the client side.
        sasl.login.callback.handler.class                    class           -               no      JAVA      Class that gives credentials to the login.
        sasl.login.class                                     class           -               no      JAVA      Class that logs in.
        sasl.login.refresh.buffer.seconds                    short:0..3600   300             broker  SECURITY  Time before expiry that a refresh of a login keeps free.
        sasl.login.refresh.min.period.seconds                short:0..900    60              broker  SECURITY  Shortest time between refreshes of a login.
        sasl.login.refresh.window.factor                     double:0.5..1   0.8             broker  SECURITY  Share of a credential's life after which it is refreshed.
        sasl.login.refresh.window.jitter                     double:0..0.25  0.05            broker  SECURITY  Random part that is added to that share.
        sasl.login.connect.timeout.ms                        int             -               no      SECURITY  Longest wait for a connection to the token service.
        sasl.login.read.timeout.ms                           int             -               no      SECURITY  Longest wait for an answer of the token service.
        sasl.login.retry.backoff.ms                          long            100             no      SECURITY  First pause after a failed login.
        sasl.login.retry.backoff.max.ms                      long            10000           no      SECURITY  Longest pause after failed logins.
        sasl.kerberos.service.name                           string          -               broker  KERBEROS  Service name of brokers.
        sasl.kerberos.kinit.cmd                              string          /usr/bin/kinit  broker  KERBEROS  Path of kinit.
        sasl.kerberos.min.time.before.relogin                long            60000           broker  KERBEROS  Shortest time between logins.
        sasl.kerberos.principal.to.local.rules               list            DEFAULT         broker  KERBEROS  Rules from principals to short names.
        sasl.kerberos.ticket.renew.jitter                    double          0.05            broker  KERBEROS  Random part of the renewal time.
        sasl.kerberos.ticket.renew.window.factor             double          0.8             broker  KERBEROS  Share of a ticket's life after which it is renewed.
        sasl.oauthbearer.jwks.endpoint.url                   string          -               no      SECURITY  Address of the keys that sign bearer tokens.
        sasl.oauthbearer.jwks.endpoint.refresh.ms            long            3600000         no      SECURITY  How often these keys are fetched anew.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long            100             no      SECURITY  First pause after failing to fetch them.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long            10000           no      SECURITY  Longest pause after failing to fetch them.
        sasl.oauthbearer.token.endpoint.url                  string          -               no      SECURITY  Address where bearer tokens are obtained.
        sasl.oauthbearer.clock.skew.seconds                  int             30              no      SECURITY  Difference of clocks that is tolerated.
        sasl.oauthbearer.expected.audience                   list            -               no      SECURITY  Audiences of which a token must name one.
        sasl.oauthbearer.expected.issuer                     string          -               no      SECURITY  Issuer that a token must name.
        sasl.oauthbearer.scope.claim.name                    string          scope           no      SECURITY  Claim that holds the scopes.
        sasl.oauthbearer.sub.claim.name                      string          sub             no      SECURITY  Claim that holds the user.
        """  # noqa: E501
    )

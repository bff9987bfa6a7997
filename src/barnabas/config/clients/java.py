"""Options that only Java clients need: accepted here, so that settings can be shared."""

from __future__ import annotations

from barnabas.config.clients.options import ClientSection
from barnabas.config.option import reserved


class JavaOptions(ClientSection):
    """What is accepted and has no effect."""

    _without_effect = reserved(
        """
        ssl.provider                                         string   -               no  JAVA           Implementation of TLS.
        ssl.keymanager.algorithm                             string   SunX509         no  JAVA           Algorithm that finds keys.
        ssl.trustmanager.algorithm                           string   PKIX            no  JAVA           Algorithm that finds trust.
        ssl.secure.random.implementation                     string   -               no  JAVA           Source of random numbers.
        ssl.engine.factory.class                             class    -               no  JAVA           Class that makes TLS engines.
        security.providers                                   string   -               no  JAVA           Classes that implement algorithms.
        sasl.login.callback.handler.class                    class    -               no  JAVA           Class that gives credentials to the login.
        sasl.client.callback.handler.class                   class    -               no  JAVA           Class that gives credentials to the client.
        sasl.login.class                                     class    -               no  JAVA           Class that logs in.
        auto.include.jmx.reporter                            boolean  true            no  JAVA           Whether metrics are shown by JMX.
        sasl.login.refresh.window.factor                     double   0.8             no  FROM_PROVIDER  Share of a token's life after which it is refreshed.
        sasl.login.refresh.window.jitter                     double   0.05            no  FROM_PROVIDER  Random part that is added to that share.
        sasl.login.refresh.min.period.seconds                short    60              no  FROM_PROVIDER  Shortest time between refreshes of a token.
        sasl.login.refresh.buffer.seconds                    short    300             no  FROM_PROVIDER  Time before expiry that a refresh of a token keeps free.
        sasl.login.connect.timeout.ms                        int      -               no  FROM_PROVIDER  Longest wait for a connection to the token service.
        sasl.login.read.timeout.ms                           int      -               no  FROM_PROVIDER  Longest wait for an answer of the token service.
        sasl.login.retry.backoff.ms                          long     100             no  FROM_PROVIDER  First pause after a failed login.
        sasl.login.retry.backoff.max.ms                      long     10000           no  FROM_PROVIDER  Longest pause after failed logins.
        sasl.oauthbearer.jwks.endpoint.url                   string   -               no  FROM_PROVIDER  Address of the keys that sign tokens.
        sasl.oauthbearer.jwks.endpoint.refresh.ms            long     3600000         no  FROM_PROVIDER  How often these keys are fetched anew.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long     100             no  FROM_PROVIDER  First pause after failing to fetch them.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long     10000           no  FROM_PROVIDER  Longest pause after failing to fetch them.
        sasl.oauthbearer.clock.skew.seconds                  int      30              no  FROM_PROVIDER  Difference of clocks that is tolerated.
        sasl.oauthbearer.expected.audience                   list     -               no  FROM_PROVIDER  Audiences of which a token must name one.
        sasl.oauthbearer.expected.issuer                     string   -               no  FROM_PROVIDER  Issuer that a token must name.
        sasl.oauthbearer.scope.claim.name                    string   scope           no  FROM_PROVIDER  Claim that holds the scopes.
        sasl.oauthbearer.sub.claim.name                      string   sub             no  FROM_PROVIDER  Claim that holds the user.
        sasl.kerberos.service.name                           string   kafka           no  KERBEROS       Service name of brokers.
        sasl.kerberos.domain.name                            string   -               no  KERBEROS       Domain name of brokers.
        sasl.kerberos.kinit.cmd                              string   /usr/bin/kinit  no  KERBEROS       Path of kinit.
        sasl.kerberos.min.time.before.relogin                long     60000           no  KERBEROS       Shortest time between logins.
        sasl.kerberos.ticket.renew.jitter                    double   0.05            no  KERBEROS       Random part of the renewal time.
        sasl.kerberos.ticket.renew.window.factor             double   0.8             no  KERBEROS       Share of a ticket's life after which it is renewed.
        """  # noqa: E501
    )

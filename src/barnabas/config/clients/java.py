"""Options that only Java clients need: accepted, so that settings can be shared with them."""

from __future__ import annotations

from barnabas.config.clients.options import ClientSection
from barnabas.config.option import reserved


class JavaOptions(ClientSection):
    """Options that are accepted to no effect."""

    _without_effect = reserved(
        """
        ssl.provider                                         string   -               no  JAVA           TLS provider.
        ssl.keymanager.algorithm                             string   SunX509         no  JAVA           Key manager algorithm.
        ssl.trustmanager.algorithm                           string   PKIX            no  JAVA           Trust manager algorithm.
        ssl.secure.random.implementation                     string   -               no  JAVA           Secure random implementation.
        ssl.engine.factory.class                             class    -               no  JAVA           Class that makes TLS engines.
        security.providers                                   string   -               no  JAVA           Java security providers.
        sasl.login.callback.handler.class                    class    -               no  JAVA           Class that supplies credentials to the login.
        sasl.client.callback.handler.class                   class    -               no  JAVA           Class that supplies credentials to the client.
        sasl.login.class                                     class    -               no  JAVA           Class that logs in.
        auto.include.jmx.reporter                            boolean  true            no  JAVA           Whether metrics are exposed through JMX.
        sasl.login.refresh.window.factor                     double   0.8             no  FROM_PROVIDER  Fraction of a token's lifetime after which it is refreshed.
        sasl.login.refresh.window.jitter                     double   0.05            no  FROM_PROVIDER  Maximum random jitter added to that fraction.
        sasl.login.refresh.min.period.seconds                short    60              no  FROM_PROVIDER  Minimum time between token refreshes.
        sasl.login.refresh.buffer.seconds                    short    300             no  FROM_PROVIDER  How long before expiry a token must be refreshed.
        sasl.login.connect.timeout.ms                        int      -               no  FROM_PROVIDER  Connect timeout towards the token service.
        sasl.login.read.timeout.ms                           int      -               no  FROM_PROVIDER  Read timeout towards the token service.
        sasl.login.retry.backoff.ms                          long     100             no  FROM_PROVIDER  Initial backoff after a failed login.
        sasl.login.retry.backoff.max.ms                      long     10000           no  FROM_PROVIDER  Maximum backoff after failed logins.
        sasl.oauthbearer.jwks.endpoint.url                   string   -               no  FROM_PROVIDER  URL of the keys that sign tokens (JWKS).
        sasl.oauthbearer.jwks.endpoint.refresh.ms            long     3600000         no  FROM_PROVIDER  How often these keys are refreshed.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long     100             no  FROM_PROVIDER  Initial backoff after a failed refresh.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long     10000           no  FROM_PROVIDER  Maximum backoff after failed refreshes.
        sasl.oauthbearer.clock.skew.seconds                  int      30              no  FROM_PROVIDER  Tolerated clock skew.
        sasl.oauthbearer.expected.audience                   list     -               no  FROM_PROVIDER  Accepted audiences; a token must name one of them.
        sasl.oauthbearer.expected.issuer                     string   -               no  FROM_PROVIDER  Required token issuer.
        sasl.oauthbearer.scope.claim.name                    string   scope           no  FROM_PROVIDER  Claim that contains the scopes.
        sasl.oauthbearer.sub.claim.name                      string   sub             no  FROM_PROVIDER  Claim that contains the user name.
        sasl.kerberos.service.name                           string   kafka           no  KERBEROS       Kerberos service name of the brokers.
        sasl.kerberos.domain.name                            string   -               no  KERBEROS       Kerberos domain name of the brokers.
        sasl.kerberos.kinit.cmd                              string   /usr/bin/kinit  no  KERBEROS       Path to the kinit command.
        sasl.kerberos.min.time.before.relogin                long     60000           no  KERBEROS       Minimum time between logins.
        sasl.kerberos.ticket.renew.jitter                    double   0.05            no  KERBEROS       Random jitter added to the renewal time.
        sasl.kerberos.ticket.renew.window.factor             double   0.8             no  KERBEROS       Fraction of a ticket's lifetime after which it is renewed.
        """  # noqa: E501
    )

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
        auto.include.jmx.reporter                            boolean  true            no  JAVA           Whether metrics are exposed through JMX.
        sasl.oauthbearer.jwks.endpoint.url                   string   -               no  BROKERS_CHECK  URL of the keys that sign tokens (JWKS).
        sasl.oauthbearer.jwks.endpoint.refresh.ms            long     3600000         no  BROKERS_CHECK  How often these keys are refreshed.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long     100             no  BROKERS_CHECK  Initial backoff after a failed refresh.
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long     10000           no  BROKERS_CHECK  Maximum backoff after failed refreshes.
        sasl.oauthbearer.clock.skew.seconds                  int      30              no  BROKERS_CHECK  Tolerated clock skew.
        sasl.oauthbearer.expected.audience                   list     -               no  BROKERS_CHECK  Accepted audiences; a token must name one of them.
        sasl.oauthbearer.expected.issuer                     string   -               no  BROKERS_CHECK  Required token issuer.
        sasl.oauthbearer.scope.claim.name                    string   scope           no  BROKERS_CHECK  Claim that contains the scopes.
        """  # noqa: E501
    )

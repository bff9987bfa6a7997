"""TLS: keys, trust and protocols."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import SECURITY


class TlsOptions(Section):
    """TLS: keys, trust and protocols."""

    _stores = reserved(
        """
        ssl.keystore.location           string    -    broker  SECURITY  File with this broker's private key and certificates.
        ssl.keystore.password           password  -    broker  SECURITY  Password of that file.
        ssl.keystore.type               string    JKS  broker  SECURITY  Format of that file: JKS, PKCS12 or PEM.
        ssl.keystore.key                password  -    broker  SECURITY  The private key itself, as PEM.
        ssl.keystore.certificate.chain  password  -    broker  SECURITY  The certificates themselves, as PEM.
        ssl.key.password                password  -    broker  SECURITY  Password of the private key.
        ssl.truststore.location         string    -    broker  SECURITY  File with the trusted certificates.
        ssl.truststore.password         password  -    broker  SECURITY  Password of that file.
        ssl.truststore.type             string    JKS  broker  SECURITY  Format of that file.
        ssl.truststore.certificates     password  -    broker  SECURITY  The trusted certificates themselves, as PEM.
        """  # noqa: E501
    )
    ssl_client_auth: str = option(
        "ssl.client.auth",
        "string",
        default="none",
        choices=("required", "requested", "none"),
        dynamic="broker",
        reserved=SECURITY,
        doc="Whether clients must present a certificate.",
    )
    _protocol = reserved(
        """
        ssl.enabled.protocols                  list     TLSv1.2  broker  SECURITY  Enabled TLS versions.
        ssl.protocol                           string   TLSv1.2  broker  SECURITY  Preferred TLS version.
        ssl.cipher.suites                      list     []       broker  SECURITY  Enabled cipher suites; empty for the library's default.
        ssl.endpoint.identification.algorithm  string   https    broker  SECURITY  How a peer's host name is verified; empty disables verification.
        ssl.principal.mapping.rules            string   DEFAULT  no      SECURITY  Rules that map a certificate's subject to a user name.
        ssl.allow.dn.changes                   boolean  false    no      SECURITY  Whether a renewed certificate may have a different subject.
        ssl.allow.san.changes                  boolean  false    no      SECURITY  Whether a renewed certificate may have different subject alternative names.
        ssl.provider                           string   -        broker  JAVA      Java security provider of TLS.
        ssl.keymanager.algorithm               string   SunX509  broker  JAVA      Java algorithm of the key manager.
        ssl.trustmanager.algorithm             string   PKIX     broker  JAVA      Java algorithm of the trust manager.
        ssl.secure.random.implementation       string   -        broker  JAVA      Java random source of TLS.
        ssl.engine.factory.class               class    -        broker  JAVA      Java class that makes TLS engines.
        """  # noqa: E501
    )

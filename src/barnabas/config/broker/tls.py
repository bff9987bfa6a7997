"""TLS: keys, trust and protocols."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option, reserved


class TlsOptions(Section):
    """TLS: keys, trust and protocols."""

    ssl_keystore_location: str | None = option(
        "ssl.keystore.location",
        "string",
        default=None,
        dynamic="broker",
        doc="File with this broker's private key and certificates: PEM, PKCS12 or JKS.",
    )
    ssl_keystore_password: Password | None = option(
        "ssl.keystore.password",
        "password",
        default=None,
        dynamic="broker",
        doc="Password of that file; PEM has none.",
    )
    ssl_keystore_type: str = option(
        "ssl.keystore.type",
        "string",
        default="JKS",
        dynamic="broker",
        doc="Format of that file: JKS, PKCS12 or PEM. Its content decides, so that any type will "
        "do for any file.",
    )
    ssl_keystore_key: Password | None = option(
        "ssl.keystore.key",
        "password",
        default=None,
        dynamic="broker",
        doc="The private key itself, as PEM.",
    )
    ssl_keystore_certificate_chain: Password | None = option(
        "ssl.keystore.certificate.chain",
        "password",
        default=None,
        dynamic="broker",
        doc="The certificates themselves, as PEM.",
    )
    ssl_key_password: Password | None = option(
        "ssl.key.password",
        "password",
        default=None,
        dynamic="broker",
        doc="Password of the private key.",
    )
    ssl_truststore_location: str | None = option(
        "ssl.truststore.location",
        "string",
        default=None,
        dynamic="broker",
        doc="File with the trusted certificates; unset for the system's.",
    )
    ssl_truststore_password: Password | None = option(
        "ssl.truststore.password",
        "password",
        default=None,
        dynamic="broker",
        doc="Password of that file; without it, the file is not checked for damage.",
    )
    ssl_truststore_type: str = option(
        "ssl.truststore.type",
        "string",
        default="JKS",
        dynamic="broker",
        doc="Format of that file, as ssl.keystore.type.",
    )
    ssl_truststore_certificates: Password | None = option(
        "ssl.truststore.certificates",
        "password",
        default=None,
        dynamic="broker",
        doc="The trusted certificates themselves, as PEM.",
    )
    ssl_client_auth: str = option(
        "ssl.client.auth",
        "string",
        default="none",
        choices=("required", "requested", "none"),
        dynamic="broker",
        doc="Whether clients must present a certificate. On SASL_SSL only with the prefix of the "
        "listener.",
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        "ssl.enabled.protocols",
        "list",
        default=("TLSv1.2", "TLSv1.3"),
        choices=("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
        dynamic="broker",
        doc="Enabled TLS versions.",
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        "ssl.cipher.suites",
        "list",
        default=(),
        dynamic="broker",
        doc="Enabled cipher suites, by Java's or OpenSSL's names; empty for OpenSSL's default.",
    )
    ssl_endpoint_identification_algorithm: str = option(
        "ssl.endpoint.identification.algorithm",
        "string",
        default="https",
        choices=("https", ""),
        dynamic="broker",
        doc="Whether another broker's certificate must match its host name: https, or empty for "
        "no.",
    )
    ssl_principal_mapping_rules: str = option(
        "ssl.principal.mapping.rules",
        "string",
        default="DEFAULT",
        doc="Rules that map a certificate's subject to a user name.",
    )
    ssl_allow_dn_changes: bool = option(
        "ssl.allow.dn.changes",
        "boolean",
        default=False,
        doc="Whether a renewed certificate may have a different subject.",
    )
    ssl_allow_san_changes: bool = option(
        "ssl.allow.san.changes",
        "boolean",
        default=False,
        doc="Whether a renewed certificate may lack subject alternative names of the old one.",
    )
    _protocol = reserved(
        """
        ssl.protocol                           string   TLSv1.3  broker  PROTOCOLS Preferred TLS version.
        ssl.provider                           string   -        broker  JAVA      Java security provider of TLS.
        ssl.keymanager.algorithm               string   SunX509  broker  JAVA      Java algorithm of the key manager.
        ssl.trustmanager.algorithm             string   PKIX     broker  JAVA      Java algorithm of the trust manager.
        ssl.secure.random.implementation       string   -        broker  JAVA      Java random source of TLS.
        ssl.engine.factory.class               class    -        broker  JAVA      Java class that makes TLS engines.
        """  # noqa: E501
    )

"""TLS: keys, trust and protocols."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option
from barnabas.config.reasons import JAVA, SECURITY


class TlsOptions(Section):
    """TLS: keys, trust and protocols."""

    ssl_keystore_location: str | None = option(
        "ssl.keystore.location",
        "string",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="File with the key and the certificates of this side.",
    )
    ssl_keystore_password: Password | None = option(
        "ssl.keystore.password",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="Password of that file.",
    )
    ssl_keystore_type: str = option(
        "ssl.keystore.type",
        "string",
        default="JKS",
        dynamic="broker",
        reserved=SECURITY,
        doc="Format of that file: JKS, PKCS12 or PEM.",
    )
    ssl_keystore_key: Password | None = option(
        "ssl.keystore.key",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="The private key itself, as PEM.",
    )
    ssl_keystore_certificate_chain: Password | None = option(
        "ssl.keystore.certificate.chain",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="The certificates themselves, as PEM.",
    )
    ssl_key_password: Password | None = option(
        "ssl.key.password",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="Password of the private key.",
    )
    ssl_truststore_location: str | None = option(
        "ssl.truststore.location",
        "string",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="File with the certificates that are trusted.",
    )
    ssl_truststore_password: Password | None = option(
        "ssl.truststore.password",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="Password of that file.",
    )
    ssl_truststore_type: str = option(
        "ssl.truststore.type",
        "string",
        default="JKS",
        dynamic="broker",
        reserved=SECURITY,
        doc="Format of that file.",
    )
    ssl_truststore_certificates: Password | None = option(
        "ssl.truststore.certificates",
        "password",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="The trusted certificates themselves, as PEM.",
    )
    ssl_client_auth: str = option(
        "ssl.client.auth",
        "string",
        default="none",
        choices=("required", "requested", "none"),
        dynamic="broker",
        reserved=SECURITY,
        doc="Whether clients must show a certificate.",
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        "ssl.enabled.protocols",
        "list",
        default=("TLSv1.2",),
        dynamic="broker",
        reserved=SECURITY,
        doc="TLS versions that are offered.",
    )
    ssl_protocol: str = option(
        "ssl.protocol",
        "string",
        default="TLSv1.2",
        dynamic="broker",
        reserved=SECURITY,
        doc="TLS version that is preferred.",
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        "ssl.cipher.suites",
        "list",
        default=(),
        dynamic="broker",
        reserved=SECURITY,
        doc="Cipher suites that are offered; empty for the library's own choice.",
    )
    ssl_endpoint_identification_algorithm: str = option(
        "ssl.endpoint.identification.algorithm",
        "string",
        default="https",
        dynamic="broker",
        reserved=SECURITY,
        doc="How the name of a peer is checked; empty for not at all.",
    )
    ssl_principal_mapping_rules: str = option(
        "ssl.principal.mapping.rules",
        "string",
        default="DEFAULT",
        reserved=SECURITY,
        doc="Rules from the name in a certificate to a user.",
    )
    ssl_allow_dn_changes: bool = option(
        "ssl.allow.dn.changes",
        "boolean",
        default=False,
        reserved=SECURITY,
        doc="Whether a new certificate may carry another name.",
    )
    ssl_allow_san_changes: bool = option(
        "ssl.allow.san.changes",
        "boolean",
        default=False,
        reserved=SECURITY,
        doc="Whether a new certificate may carry other alternative names.",
    )
    ssl_provider: str | None = option(
        "ssl.provider",
        "string",
        default=None,
        dynamic="broker",
        reserved=JAVA,
        doc="Java security provider of TLS.",
    )
    ssl_keymanager_algorithm: str = option(
        "ssl.keymanager.algorithm",
        "string",
        default="SunX509",
        dynamic="broker",
        reserved=JAVA,
        doc="Java algorithm of the key manager.",
    )
    ssl_trustmanager_algorithm: str = option(
        "ssl.trustmanager.algorithm",
        "string",
        default="PKIX",
        dynamic="broker",
        reserved=JAVA,
        doc="Java algorithm of the trust manager.",
    )
    ssl_secure_random_implementation: str | None = option(
        "ssl.secure.random.implementation",
        "string",
        default=None,
        dynamic="broker",
        reserved=JAVA,
        doc="Java random source of TLS.",
    )
    ssl_engine_factory_class: str | None = option(
        "ssl.engine.factory.class",
        "class",
        default=None,
        dynamic="broker",
        reserved=JAVA,
        doc="Java class that makes TLS engines.",
    )

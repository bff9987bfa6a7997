"""TLS and SASL options of clients.

Certificates and keys are PEM, in files or as strings, or in PKCS12 or JKS stores. The short
names (`ssl_cafile`, `sasl_plain_username`) are those of kafka-python and aiokafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from barnabas.config.clients.classes import ROLES, found
from barnabas.config.clients.java import JavaOptions
from barnabas.config.jaas import JaasEntry, jaas_entry
from barnabas.config.login import LoginOptions
from barnabas.config.option import Password, option


class SecurityOptions(JavaOptions, LoginOptions):
    """How a client and its brokers authenticate each other."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "sasl.username": "sasl.plain.username",
            "sasl.password": "sasl.plain.password",
            "sasl.mechanisms": "sasl.mechanism",
            "ssl.key.password": "ssl.password",
            "ssl.cipher.suites": "ssl.ciphers",
            "ssl.truststore.location": "ssl.cafile",
            "ssl.ca.location": "ssl.cafile",
            "ssl.ca.pem": "ssl.truststore.certificates",
            "ssl.certificate.location": "ssl.certfile",
            "ssl.certificate.pem": "ssl.keystore.certificate.chain",
            "ssl.key.location": "ssl.keyfile",
            "ssl.key.pem": "ssl.keystore.key",
            "ssl.crl.location": "ssl.crlfile",
        }
    )

    security_protocol: str = option(
        "security.protocol",
        "string",
        default="PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Whether connections are encrypted (…SSL) and the client authenticates (SASL_…).",
    )
    ssl_context: Any = option(
        "ssl.context",
        "object",
        default=None,
        doc="An ssl.SSLContext to use as is, instead of the other TLS options.",
    )
    ssl_cafile: str | None = option(
        "ssl.cafile",
        "string",
        default=None,
        doc="File with trusted CA certificates (PEM, PKCS12 or JKS); unset: the system's.",
    )
    ssl_truststore_certificates: Password | None = option(
        "ssl.truststore.certificates",
        "password",
        default=None,
        doc="Trusted CA certificates as a string.",
    )
    ssl_certfile: str | None = option(
        "ssl.certfile",
        "string",
        default=None,
        doc="File with the client's certificate chain.",
    )
    ssl_keyfile: str | None = option(
        "ssl.keyfile",
        "string",
        default=None,
        doc="File with the client's private key; unset: it is in ssl_certfile.",
    )
    ssl_keystore_location: str | None = option(
        "ssl.keystore.location",
        "string",
        default=None,
        doc="File with both the client's private key and its certificates (PEM, PKCS12 or JKS).",
    )
    ssl_keystore_key: Password | None = option(
        "ssl.keystore.key", "password", default=None, doc="The client's private key as a string."
    )
    ssl_keystore_certificate_chain: Password | None = option(
        "ssl.keystore.certificate.chain",
        "password",
        default=None,
        doc="The client's certificate chain as a string.",
    )
    ssl_password: Password | None = option(
        "ssl.password", "password", default=None, doc="Password of the client's private key."
    )
    ssl_crlfile: str | None = option(
        "ssl.crlfile", "string", default=None, doc="Certificate revocation list."
    )
    ssl_check_hostname: bool = option(
        "ssl.check.hostname",
        "boolean",
        default=True,
        doc="Whether a broker's certificate must match its host name.",
    )
    ssl_endpoint_identification_algorithm: str = option(
        "ssl.endpoint.identification.algorithm",
        "string",
        default="https",
        choices=("https", "none", ""),
        doc="The same in Java's form: https checks the host name, none or empty does not.",
    )
    ssl_ciphers: str | None = option(
        "ssl.ciphers",
        "string",
        default=None,
        doc="Cipher suites, by Java's or OpenSSL's names.",
    )
    ssl_protocol: str = option(
        "ssl.protocol",
        "string",
        default="TLSv1.3",
        reserved="ssl.enabled.protocols decides",
        doc="TLS version.",
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        "ssl.enabled.protocols",
        "list",
        default=("TLSv1.2", "TLSv1.3"),
        choices=("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
        doc="Enabled TLS versions.",
    )
    ssl_keystore_type: str = option(
        "ssl.keystore.type",
        "string",
        default="JKS",
        doc="Format of the key store: JKS, PKCS12 or PEM. Its content decides, so that any type "
        "will do for any file.",
    )
    ssl_keystore_password: Password | None = option(
        "ssl.keystore.password",
        "password",
        default=None,
        doc="Password of the key store; PEM has none.",
    )
    ssl_truststore_type: str = option(
        "ssl.truststore.type",
        "string",
        default="JKS",
        doc="Format of the trust store, as ssl.keystore.type.",
    )
    ssl_truststore_password: Password | None = option(
        "ssl.truststore.password",
        "password",
        default=None,
        doc="Password of the trust store; without it, the file is not checked for damage.",
    )
    sasl_mechanism: str = option(
        "sasl.mechanism",
        "string",
        default="PLAIN",
        choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
        doc="SASL mechanism. Kafka's default is GSSAPI (Kerberos), which needs the extra kerberos.",
    )
    sasl_plain_username: str | None = option(
        "sasl.plain.username",
        "string",
        default=None,
        doc="User name for PLAIN and SCRAM (sasl.username of librdkafka).",
    )
    sasl_plain_password: Password | None = option(
        "sasl.plain.password", "password", default=None, doc="Password for PLAIN and SCRAM."
    )
    sasl_jaas_config: Password | None = option(
        "sasl.jaas.config",
        "password",
        default=None,
        doc="Credentials in Kafka's form: …LoginModule required and options: username and password "
        "(with tokenauth=true those of a delegation token); clientId, clientSecret, scope, "
        "extension_… and ssl.… of a token endpoint; unsecuredLogin…; keyTab, principal and others "
        "of Kerberos.",
    )
    sasl_oauth_token_provider: Any = option(
        "sasl.oauth.token.provider",
        "object",
        default=None,
        doc="Object whose token() returns the OAUTHBEARER token (extensions() may return a dict of"
        " strings with it), or a function that returns the token; both may be coroutines.",
    )
    sasl_kerberos_domain_name: str | None = option(
        "sasl.kerberos.domain.name",
        "string",
        default=None,
        doc="Host name in the Kerberos principals of the brokers; unset: the host that is dialled.",
    )
    sasl_kerberos_name: Any = option(
        "sasl.kerberos.name",
        "object",
        default=None,
        doc="A gssapi.Name of the brokers, instead of service and domain name.",
    )

    uses_tls: bool
    uses_sasl: bool
    login_entry: JaasEntry | None
    """The entry of sasl.jaas.config."""

    def _derive(self, attributes: dict[str, Any]) -> None:
        super()._derive(attributes)
        protocol = self.security_protocol
        attributes["uses_tls"] = protocol.endswith("SSL")
        attributes["uses_sasl"] = protocol.startswith("SASL")
        if isinstance(self.sasl_oauth_token_provider, str):
            named = found(
                "sasl.oauth.token.provider",
                ROLES["token provider"],
                self.sasl_oauth_token_provider,
            )
            attributes["sasl_oauth_token_provider"] = named() if isinstance(named, type) else named
        attributes["login_entry"] = None
        if self.sasl_jaas_config is not None:
            entry = jaas_entry(self.sasl_jaas_config.value, "sasl.jaas.config")
            attributes["login_entry"] = entry
            jaas = entry.options
            if "username" in jaas and self.sasl_plain_username is None:
                attributes["sasl_plain_username"] = jaas["username"]
            if "password" in jaas and self.sasl_plain_password is None:
                attributes["sasl_plain_password"] = Password(jaas["password"])
        if self.uses_sasl:
            self._check_credentials()

    def _check_credentials(self) -> None:
        mechanism = self.sasl_mechanism
        if mechanism == "OAUTHBEARER":
            sources = (
                self.sasl_oauth_token_provider,
                self.sasl_oauthbearer_token_endpoint_url,
                self.login_entry,
            )
            if sources == (None, None, None):
                raise self.options["sasl.mechanism"].error(
                    mechanism,
                    "needs sasl.oauth.token.provider, sasl.oauthbearer.token.endpoint.url or "
                    "sasl.jaas.config",
                )
        elif mechanism != "GSSAPI" and None in (self.sasl_plain_username, self.sasl_plain_password):
            raise self.options["sasl.mechanism"].error(
                mechanism, "needs sasl.plain.username and sasl.plain.password"
            )

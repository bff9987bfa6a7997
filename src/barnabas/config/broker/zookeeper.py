"""The connection to ZooKeeper."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option
from barnabas.config.reasons import JAVA, KRAFT, REVOCATION


class ZookeeperOptions(Section):
    """The connection to ZooKeeper."""

    zookeeper_connect: str | None = option(
        "zookeeper.connect",
        "string",
        default=None,
        doc="Servers of the ensemble as host:port, with an optional path at the end.",
    )
    zookeeper_connection_timeout_ms: int | None = option(
        "zookeeper.connection.timeout.ms",
        "int",
        default=None,
        doc="Maximum wait for the first connection; defaults to the session timeout.",
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        "int",
        default=18_000,
        doc="Session timeout towards the coordination service.",
    )
    zookeeper_set_acl: bool = option(
        "zookeeper.set.acl",
        "boolean",
        default=False,
        doc="Whether nodes are created with ACLs: the brokers may do everything, others may read "
        "what is not secret. Needs a login, credentials or a certificate.",
    )
    zookeeper_max_in_flight_requests: int = option(
        "zookeeper.max.in.flight.requests",
        "int",
        default=10,
        at_least=1,
        doc="Maximum number of requests in flight.",
    )
    zookeeper_metadata_migration_enable: bool = option(
        "zookeeper.metadata.migration.enable",
        "boolean",
        default=False,
        refused=KRAFT,
        doc="Whether metadata is migrated from ZooKeeper to KRaft.",
    )
    zookeeper_client_cnxn_socket: str | None = option(
        "zookeeper.clientCnxnSocket",
        "string",
        default=None,
        reserved=JAVA,
        doc="Java class that implements the connection.",
    )
    zookeeper_sasl_client: bool = option(
        "zookeeper.sasl.client",
        "boolean",
        default=True,
        doc="Whether the broker logs in to ZooKeeper, if java.security.auth.login.config has a "
        "section for it. In Kafka it is a property of the JVM.",
    )
    zookeeper_sasl_clientconfig: str = option(
        "zookeeper.sasl.clientconfig",
        "string",
        default="Client",
        doc="Section of java.security.auth.login.config with the user name and password for "
        "ZooKeeper (DIGEST-MD5). In Kafka it is a property of the JVM.",
    )
    zookeeper_ssl_client_enable: bool = option(
        "zookeeper.ssl.client.enable",
        "boolean",
        default=False,
        doc="Whether the connection uses TLS.",
    )
    zookeeper_ssl_keystore_location: str | None = option(
        "zookeeper.ssl.keystore.location",
        "string",
        default=None,
        doc="File with this broker's private key and certificates: PEM, PKCS12 or JKS.",
    )
    zookeeper_ssl_keystore_password: Password | None = option(
        "zookeeper.ssl.keystore.password",
        "password",
        default=None,
        doc="Password of that file and of the key in it.",
    )
    zookeeper_ssl_keystore_type: str | None = option(
        "zookeeper.ssl.keystore.type",
        "string",
        default=None,
        doc="Format of that file: JKS, PKCS12 or PEM. Its content decides, so that any type will "
        "do.",
    )
    zookeeper_ssl_truststore_location: str | None = option(
        "zookeeper.ssl.truststore.location",
        "string",
        default=None,
        doc="File with the trusted certificates: PEM, PKCS12 or JKS; defaults to the system's.",
    )
    zookeeper_ssl_truststore_password: Password | None = option(
        "zookeeper.ssl.truststore.password",
        "password",
        default=None,
        doc="Password of that file; PEM has none.",
    )
    zookeeper_ssl_truststore_type: str | None = option(
        "zookeeper.ssl.truststore.type",
        "string",
        default=None,
        doc="Format of that file: JKS, PKCS12 or PEM. Its content decides, so that any type will "
        "do.",
    )
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None = option(
        "zookeeper.ssl.cipher.suites",
        "list",
        default=None,
        doc="Enabled cipher suites, by the names of Java or OpenSSL.",
    )
    zookeeper_ssl_crl_enable: bool = option(
        "zookeeper.ssl.crl.enable",
        "boolean",
        default=False,
        doc="Whether revocation lists are checked: those of barnabas.zookeeper.ssl.crl.location, "
        "which must be set.",
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = option(
        "zookeeper.ssl.enabled.protocols",
        "list",
        default=None,
        doc="Enabled TLS versions.",
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = option(
        "zookeeper.ssl.endpoint.identification.algorithm",
        "string",
        default="HTTPS",
        doc="How a server's host name is verified.",
    )
    zookeeper_ssl_ocsp_enable: bool = option(
        "zookeeper.ssl.ocsp.enable",
        "boolean",
        default=False,
        reserved=REVOCATION,
        doc="Whether revocation is checked online (OCSP).",
    )
    zookeeper_ssl_protocol: str = option(
        "zookeeper.ssl.protocol",
        "string",
        default="TLSv1.2",
        doc="Preferred TLS version.",
    )

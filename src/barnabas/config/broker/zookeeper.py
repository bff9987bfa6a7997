"""The connection to ZooKeeper."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option
from barnabas.config.reasons import JAVA, KRAFT, PEM, REVOCATION


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
        doc="Longest wait for the first connection; by default the session timeout.",
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        "int",
        default=18_000,
        doc="Silence after which a session with the coordination service ends.",
    )
    zookeeper_set_acl: bool = option(
        "zookeeper.set.acl",
        "boolean",
        default=False,
        doc="Whether nodes are protected by ACLs.",
    )
    zookeeper_max_in_flight_requests: int = option(
        "zookeeper.max.in.flight.requests",
        "int",
        default=10,
        at_least=1,
        doc="Requests that may be under way at once.",
    )
    zookeeper_metadata_migration_enable: bool = option(
        "zookeeper.metadata.migration.enable",
        "boolean",
        default=False,
        refused=KRAFT,
        doc="Whether metadata moves from ZooKeeper to KRaft.",
    )
    zookeeper_client_cnxn_socket: str | None = option(
        "zookeeper.clientCnxnSocket",
        "string",
        default=None,
        reserved=JAVA,
        doc="Java class of the connection.",
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
        doc="PEM file with the key and the certificates of this side.",
    )
    zookeeper_ssl_keystore_password: Password | None = option(
        "zookeeper.ssl.keystore.password",
        "password",
        default=None,
        doc="Password of that file.",
    )
    zookeeper_ssl_keystore_type: str | None = option(
        "zookeeper.ssl.keystore.type",
        "string",
        default=None,
        doc="Format of that file: PEM.",
    )
    zookeeper_ssl_truststore_location: str | None = option(
        "zookeeper.ssl.truststore.location",
        "string",
        default=None,
        doc="PEM file with the certificates that are trusted; by default those of the system.",
    )
    zookeeper_ssl_truststore_password: Password | None = option(
        "zookeeper.ssl.truststore.password",
        "password",
        default=None,
        reserved=PEM,
        doc="Password of that file.",
    )
    zookeeper_ssl_truststore_type: str | None = option(
        "zookeeper.ssl.truststore.type",
        "string",
        default=None,
        doc="Format of that file: PEM.",
    )
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None = option(
        "zookeeper.ssl.cipher.suites",
        "list",
        default=None,
        doc="Cipher suites that are offered, by OpenSSL's names.",
    )
    zookeeper_ssl_crl_enable: bool = option(
        "zookeeper.ssl.crl.enable",
        "boolean",
        default=False,
        reserved=REVOCATION,
        doc="Whether revocation lists are checked.",
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = option(
        "zookeeper.ssl.enabled.protocols",
        "list",
        default=None,
        doc="TLS versions that are offered.",
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = option(
        "zookeeper.ssl.endpoint.identification.algorithm",
        "string",
        default="HTTPS",
        doc="How the name of a server is checked.",
    )
    zookeeper_ssl_ocsp_enable: bool = option(
        "zookeeper.ssl.ocsp.enable",
        "boolean",
        default=False,
        reserved=REVOCATION,
        doc="Whether revocation is asked for online.",
    )
    zookeeper_ssl_protocol: str = option(
        "zookeeper.ssl.protocol",
        "string",
        default="TLSv1.2",
        doc="TLS version that is preferred.",
    )

"""The options with which a client connects to a secured cluster, as each library names them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from barnabas.config.jaas import quoted
from barnabas.security.setup.broker_options import SASL_PLAINTEXT, SSL

MECHANISM = "SCRAM-SHA-512"

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Where a client connects to, whom it trusts, and who it is."""

    bootstrap: str
    protocol: str
    cafile: Path
    user: str
    password: str = field(repr=False)
    keystore: Path | None = None
    """Private key and certificate (PEM), where brokers ask for them."""

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol != SASL_PLAINTEXT

    @property
    def uses_sasl(self) -> bool:
        """Whether the client has a password."""
        return self.protocol != SSL

    def kafka(self) -> dict[str, str]:
        """Return Kafka's own names: Java, `--command-config`, and our clients."""
        options = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.uses_sasl:
            login = f"{_SCRAM} username={quoted(self.user)} password={quoted(self.password)};"
            options |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": login}
        if self.uses_tls:
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.cafile),
            }
            if self.keystore is not None:
                options |= {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.location": str(self.keystore),
                }
        return options

    def librdkafka(self) -> dict[str, str]:
        """Return the names of librdkafka: confluent-kafka, kcat; our clients know them, too."""
        options = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.uses_sasl:
            options |= {
                "sasl.mechanism": MECHANISM,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        if self.uses_tls:
            options["ssl.ca.location"] = str(self.cafile)
            if self.keystore is not None:
                options |= {
                    "ssl.certificate.location": str(self.keystore),
                    "ssl.key.location": str(self.keystore),
                }
        return options

    def kafka_python(self) -> dict[str, str]:
        """Return the arguments of kafka-python, and of our clients."""
        options = {"bootstrap_servers": self.bootstrap, "security_protocol": self.protocol}
        if self.uses_sasl:
            options |= {
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        if self.uses_tls:
            options["ssl_cafile"] = str(self.cafile)
            if self.keystore is not None:
                options["ssl_certfile"] = options["ssl_keyfile"] = str(self.keystore)
        return options

"""What one client does in a measurement; JSON carries it to the client's process."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

BARNABAS, CONFLUENT, AIOKAFKA, KAFKA_PYTHON = CLIENTS = (
    "barnabas",
    "confluent-kafka",
    "aiokafka",
    "kafka-python",
)
MODULES = {CONFLUENT: "confluent_kafka", AIOKAFKA: "aiokafka", KAFKA_PYTHON: "kafka"}


@dataclass(frozen=True)
class Plan:
    """Which client, with which options (Kafka's names), and how much of what."""

    action: str
    """produce, consume or latency."""
    topic: str
    client: str = BARNABAS
    options: dict[str, str] = field(default_factory=dict)
    records: int | None = None
    """How many; None: until the duration is over, or all that is there."""
    duration_s: float | None = None
    throughput: float | None = None
    """Records per second; None: as many as possible."""
    from_intended: bool = True
    """With a throughput: latencies count from when a record was due, not from when it was sent."""
    record_size: int = 100
    payload_file: str | None = None
    payload_delimiter: str = "\n"
    monotonic: bool = False
    """Payloads are the numbers from 0 on."""
    transaction_ms: float | None = None
    """How long a transaction is; None: there are none."""
    partitions: tuple[int, ...] = ()
    """The partitions that are read without a group; all of the topic if there are none here."""
    from_end: bool = False
    group: str | None = None
    idle_s: float = 10.0
    """A consumer ends when no record has arrived for so long."""

    def encoded(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def decoded(cls, text: str) -> Plan:
        """Return the plan of a JSON text."""
        document: dict[str, Any] = json.loads(text)
        return cls(**{**document, "partitions": tuple(document["partitions"])})

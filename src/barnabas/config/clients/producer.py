"""Options of producers. Defaults are those of Kafka 3.9, and of kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from barnabas.config.clients.classes import ROLES, all_found, found, made
from barnabas.config.clients.common import CommonOptions
from barnabas.config.option import option
from barnabas.model.errors import ConfigError

IN_FLIGHT_MAX_IDEMPOTENT = 5
"""Brokers remember the last five batches per producer and partition, to detect duplicates."""

RETRIES_MAX = 2_147_483_647

GROWN_BATCH_BYTES = 256 * 1024
"""Maximum size of a full batch that cannot be sent yet, if batch.size is unset."""


class ProducerOptions(CommonOptions):
    """What producers add to the options of all clients."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "max.batch.size": "batch.size",  # aiokafka
            "queue.buffering.max.ms": "linger.ms",  # librdkafka
            "compression.codec": "compression.type",
            "message.send.max.retries": "retries",
            "max.in.flight": "max.in.flight.requests.per.connection",
            "request.required.acks": "acks",
            "partitioner.class": "partitioner",
            "interceptor.classes": "interceptors",
        }
    )

    batch_size_max: int
    """Maximum size of a batch; derived from batch.size."""

    key_serializer: Any = option(
        "key.serializer",
        "object",
        default=None,
        doc="Serializer for keys: a function, an object with `serialize`, a class or its name"
        " (barnabas.serialization has Kafka's); unset: keys are bytes.",
    )
    value_serializer: Any = option(
        "value.serializer",
        "object",
        default=None,
        doc="Serializer for values, like key.serializer; unset: values are bytes.",
    )
    serializer_encoding: str | None = option(
        "serializer.encoding",
        "string",
        default=None,
        doc="Encoding of StringSerializer and UUIDSerializer if the next two are unset; default:"
        " UTF-8.",
    )
    key_serializer_encoding: str | None = option(
        "key.serializer.encoding", "string", default=None, doc="Encoding for keys."
    )
    value_serializer_encoding: str | None = option(
        "value.serializer.encoding", "string", default=None, doc="Encoding for values."
    )
    list_key_serializer_inner: Any = option(
        "list.key.serializer.inner",
        "object",
        default=None,
        doc="Serializer for list items if key.serializer is ListSerializer.",
    )
    list_value_serializer_inner: Any = option(
        "list.value.serializer.inner",
        "object",
        default=None,
        doc="Serializer for list items if value.serializer is ListSerializer.",
    )
    partitioner: Any = option(
        "partitioner",
        "object",
        default=None,
        doc="Partitioner: an object with partition(topic, key, serialized_key, value, "
        "serialized_value, cluster), a function of (key, all_partitions, available_partitions), "
        "the name of one, or round_robin. Unset: by the key's hash; without a key, one partition "
        "per batch.",
    )
    partitioner_ignore_keys: bool = option(
        "partitioner.ignore.keys",
        "boolean",
        default=False,
        doc="Whether records with a key are partitioned as if they had none.",
    )
    partitioner_adaptive_partitioning_enable: bool = option(
        "partitioner.adaptive.partitioning.enable",
        "boolean",
        default=True,
        doc="Whether records without a key prefer partitions with shorter queues.",
    )
    partitioner_availability_timeout_ms: int = option(
        "partitioner.availability.timeout.ms",
        "long",
        default=0,
        at_least=0,
        doc="Records without a key avoid leaders that accepted nothing for this long; 0: off.",
    )
    interceptors: Any = option(
        "interceptors",
        "object",
        default=(),
        doc="Objects with on_send(record) and on_acknowledgement(metadata, exception), their"
        " classes or class names.",
    )
    acks: str = option(
        "acks",
        "object",
        default="all",
        doc="Acknowledgements required: 0 for none, 1 for the leader, all for the ISR.",
    )
    enable_idempotence: bool = option(
        "enable.idempotence",
        "boolean",
        default=True,
        doc="Whether retried batches are written exactly once. Requires acks=all, retries and at"
        " most 5 requests in flight; unless set, conflicting values of those turn it off.",
    )
    transactional_id: str | None = option(
        "transactional.id",
        "string",
        default=None,
        doc="Identifies the producer's transactions across restarts.",
    )
    transaction_timeout_ms: int = option(
        "transaction.timeout.ms",
        "int",
        default=60_000,
        at_least=1,
        doc="Time after which the broker aborts an open transaction.",
    )
    batch_size: int = option(
        "batch.size",
        "int",
        default=16_384,
        at_least=0,
        doc="Batch size before compression; a larger record gets a batch of its own. Unless set,"
        " a full batch that cannot be sent yet keeps growing, up to 256 KiB.",
    )
    linger_ms: float = option(
        "linger.ms",
        "double",
        default=0.0,
        at_least=0,
        doc="How long an incomplete batch waits for more records.",
    )
    buffer_memory: int = option(
        "buffer.memory",
        "long",
        default=33_554_432,
        at_least=1,
        doc="Memory for batches waiting to be sent; send blocks when it is used up.",
    )
    max_block_ms: int = option(
        "max.block.ms",
        "long",
        default=60_000,
        at_least=0,
        doc="How long send may block, waiting for memory or metadata.",
    )
    max_request_size: int = option(
        "max.request.size",
        "int",
        default=1_048_576,
        at_least=1,
        doc="Largest request, and therefore the largest record before compression.",
    )
    compression_type: str | None = option(
        "compression.type",
        "string",
        default=None,
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        doc="Compression codec for batches.",
    )
    compression_gzip_level: int = option(
        "compression.gzip.level",
        "int",
        default=-1,
        at_least=1,
        at_most=9,
        besides=(-1,),
        doc="Compression level of gzip; -1 for its default.",
    )
    compression_lz4_level: int = option(
        "compression.lz4.level",
        "int",
        default=9,
        at_least=1,
        at_most=17,
        doc="Compression level of lz4.",
    )
    compression_zstd_level: int = option(
        "compression.zstd.level",
        "int",
        default=3,
        at_least=-131_072,
        at_most=22,
        doc="Compression level of zstd.",
    )
    retries: Any = option(
        "retries",
        "object",
        default=RETRIES_MAX,
        doc="How often a batch is retried after a transient failure.",
    )
    delivery_timeout_ms: int = option(
        "delivery.timeout.ms",
        "int",
        default=120_000,
        at_least=0,
        doc="Upper bound from send to its result; at least linger.ms plus request.timeout.ms.",
    )
    metadata_max_idle_ms: int = option(
        "metadata.max.idle.ms",
        "long",
        default=300_000,
        at_least=5000,
        doc="Metadata of a topic is dropped when nothing was sent to it for this long.",
    )
    allow_auto_create_topics: bool = option(
        "allow.auto.create.topics",
        "boolean",
        default=True,
        doc="Whether requesting metadata of a missing topic creates it, if brokers allow that.",
    )

    def _derive(self, attributes: dict[str, Any]) -> None:
        super()._derive(attributes)
        self._derive_classes(attributes)
        attributes["acks"] = _acks(self.acks)
        attributes["retries"] = _retries(self.retries)
        self._derive_idempotence(attributes)
        attributes["batch_size_max"] = self.batch_size
        if "batch.size" not in self.given:
            attributes["batch_size_max"] = min(GROWN_BATCH_BYTES, self.max_request_size)
        shortest_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < shortest_ms:
            if "delivery.timeout.ms" in self.given:
                raise ConfigError(
                    f"delivery.timeout.ms={self.delivery_timeout_ms}: must be at least linger.ms +"
                    f" request.timeout.ms ({shortest_ms:g})"
                )
            attributes["delivery_timeout_ms"] = int(shortest_ms)

    def _derive_classes(self, attributes: dict[str, Any]) -> None:
        serializer = ROLES["serializer"]
        attributes["key_serializer"] = made(
            "key.serializer", serializer, self.key_serializer, self.given, is_key=True
        )
        attributes["value_serializer"] = made(
            "value.serializer", serializer, self.value_serializer, self.given, is_key=False
        )
        attributes["partitioner"] = found("partitioner", ROLES["partitioner"], self.partitioner)
        attributes["interceptors"] = all_found(
            "interceptors", ROLES["interceptor"], self.interceptors
        )

    def _derive_idempotence(self, attributes: dict[str, Any]) -> None:
        """Reject conflicts with idempotence that was asked for; otherwise turn it off."""
        asked_for = self.transactional_id is not None or (
            "enable.idempotence" in self.given and self.enable_idempotence
        )
        if self.transactional_id == "":
            raise ConfigError("transactional.id=: must not be empty")
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ConfigError("transactional.id needs enable.idempotence=true")
        if not self.enable_idempotence:
            return
        conflicts = []
        if attributes["acks"] != -1:
            conflicts.append(f"acks={attributes['acks']}: must be all")
        if attributes["retries"] == 0:
            conflicts.append("retries=0: must be at least 1")
        if self.max_in_flight_requests_per_connection > IN_FLIGHT_MAX_IDEMPOTENT:
            conflicts.append(
                "max.in.flight.requests.per.connection="
                f"{self.max_in_flight_requests_per_connection}: must be at most"
                f" {IN_FLIGHT_MAX_IDEMPOTENT}"
            )
        if conflicts and asked_for:
            raise ConfigError(f"{'; '.join(conflicts)} for an idempotent producer")
        if conflicts:
            attributes["enable_idempotence"] = False


def _acks(given: object) -> int:
    acks = {"0": 0, "1": 1, "-1": -1, "all": -1}.get(str(given))
    if acks is None or isinstance(given, bool):
        raise ConfigError(f"acks={given}: must be 0, 1 or all")
    return acks


def _retries(given: object) -> int:
    """Parse a number; kafka-python uses float("inf") for "until the timeout"."""
    if given == float("inf"):
        return RETRIES_MAX
    text = str(given)
    if isinstance(given, bool) or not text.isdecimal() or int(text) > RETRIES_MAX:
        raise ConfigError(f"retries={given}: must be a whole number of at least 0")
    return int(text)

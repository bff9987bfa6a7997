"""`kafka-console-producer`: send the lines of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas import KafkaProducer
    from barnabas.cli.kafka.line_reader import LineReader

TOOL = "kafka-console-producer"

# Flag, the property that it sets, its default. A flag that is given overrides the property; a
# default does not.
MERGED = (
    ("timeout", "linger.ms", "1000"),
    ("request-required-acks", "acks", "-1"),
    ("request-timeout-ms", "request.timeout.ms", "1500"),
    ("message-send-max-retries", "retries", "3"),
    ("retry-backoff-ms", "retry.backoff.ms", "100"),
    ("socket-buffer-size", "send.buffer.bytes", "102400"),
    ("max-memory-bytes", "buffer.memory", "33554432"),
    ("batch-size", "batch.size", "16384"),
    ("max-partition-memory-bytes", "batch.size", "16384"),
    ("metadata-expiry-ms", "metadata.max.age.ms", "300000"),
    ("max-block-ms", "max.block.ms", "60000"),
)
_SET = {flag: (option, default) for flag, option, default in MERGED}


def _merged(name: str, metavar: str, help: str) -> Flag:
    option, default = _SET[name]
    return Flag(f"--{name}", metavar, f"{help} ({option}; default: {default})", convert=_number)


def _number(text: str) -> str:
    int(text)
    return text


FLAGS = Flags(
    "Read data from standard input and publish it to Kafka.",
    (
        Flag("--topic", "TOPIC", "topic to produce to", required=True),
        BOOTSTRAP,
        Flag("--broker-list", "HOST:PORT[,...]", "older name of --bootstrap-server"),
        Flag("--sync", help="wait for the acknowledgement of each record before the next"),
        Flag(
            "--compression-codec",
            "CODEC",
            "none, gzip, snappy, lz4 or zstd; without a value: gzip",
            optional_value=True,
        ),
        Flag("--request-required-acks", "ACKS", "acknowledgements to wait for (acks; default: -1)"),
        _merged("batch-size", "BYTES", "size of a batch"),
        _merged("message-send-max-retries", "N", "retries of a failed request"),
        _merged("retry-backoff-ms", "MS", "time before a retry"),
        _merged("timeout", "MS", "time that a record waits for others"),
        _merged("request-timeout-ms", "MS", "timeout of a request"),
        _merged("metadata-expiry-ms", "MS", "time after which metadata is read again"),
        _merged("max-block-ms", "MS", "time that sending a record may block"),
        _merged("max-memory-bytes", "BYTES", "memory for records that wait"),
        _merged("max-partition-memory-bytes", "BYTES", "size of a batch, if given"),
        _merged("socket-buffer-size", "BYTES", "size of the send buffer of sockets"),
        Flag(
            "--line-reader", "CLASS", "only Kafka's LineMessageReader", default="LineMessageReader"
        ),
        Flag("--property", "NAME=VALUE", "property of the line reader: parse.key, …", many=True),
        Flag("--reader-property", "NAME=VALUE", "the same", many=True),
        Flag("--reader-config", "FILE", "properties of the line reader"),
        Flag("--producer-property", "NAME=VALUE", "property of the producer", many=True),
        Flag("--command-property", "NAME=VALUE", "the same", many=True),
        Flag("--producer.config", "FILE", "properties of the producer"),
        Flag("--command-config", "FILE", "the same"),
    ),
)
ALIKE = (
    ("property", "reader-property"),
    ("producer-property", "command-property"),
    ("producer.config", "command-config"),
)


def run(given: Given) -> int:
    """Send each line, until the input ends."""
    from barnabas.cli.kafka.line_reader import NAMES, LineReader

    for older, newer in ALIKE:
        if older in given and newer in given:
            raise UsageError(f"Options --{newer} and --{older} cannot be specified together.")
    if "line-reader" in given and given["line-reader"] not in NAMES:
        raise UsageError(
            f"--line-reader {given['line-reader']}: Java classes cannot be loaded; "
            f"the only reader is {NAMES[0]}"
        )
    options = producer_options(given)
    reader = LineReader(reader_properties(given))
    from barnabas import KafkaProducer
    from barnabas.cli.kafka.client_properties import connecting

    file = given["producer.config"] or given["command-config"]
    with connecting(file, "--command-config"):
        producer = KafkaProducer(**options)
    with producer:
        _send(producer, reader, given["topic"], sync=given["sync"])
    return 0


def reader_properties(given: Given) -> dict[str, str]:
    """Return the properties of the line reader: those of the file, then the flags'."""
    from barnabas.cli.kafka.client_properties import assignments, read_file

    return {
        **read_file("--reader-config", given["reader-config"]),
        **assignments("--property", given["property"] + given["reader-property"]),
    }


def producer_options(given: Given) -> dict[str, Any]:
    """Return the options of the producer, in Kafka's order of precedence."""
    from barnabas.cli.kafka.client_properties import assignments, read_file, understood
    from barnabas.config.clients.producer import ProducerOptions

    bootstrap = given["bootstrap-server"] or given["broker-list"]
    if not bootstrap:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    properties = {
        **read_file("--producer.config", given["producer.config"]),
        **read_file("--command-config", given["command-config"]),
        **assignments("--producer-property", given["producer-property"]),
        **assignments("--command-property", given["command-property"]),
        "bootstrap.servers": bootstrap,
        "compression.type": "none",
    }
    if "compression-codec" in given:
        properties["compression.type"] = given["compression-codec"] or "gzip"
    properties.setdefault("client.id", "console-producer")
    for flag, option, default in MERGED:
        if flag in given:
            properties[option] = given[flag]
        else:
            properties.setdefault(option, default)
    return dict(understood(TOOL, ProducerOptions, properties))


def _send(producer: KafkaProducer, reader: LineReader, topic: str, *, sync: bool) -> None:
    for line in _lines():
        key, value, headers = reader.row(line)
        future = producer.send(topic, value, key, headers)
        if sync:
            future.get()
        else:
            future.add_errback(_complain, topic, key, value)


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input, asking for each on a terminal."""
    prompts = sys.stdin.isatty() and sys.stdout.isatty()
    while True:
        if prompts:
            print(">", end="", flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line.rstrip(b"\n").removesuffix(b"\r")


def _complain(topic: str, key: bytes | None, value: bytes | None, failure: BaseException) -> None:
    """Report a record that was not sent, as Kafka's producer callback does."""
    print(
        f"Error when sending message to topic {topic} with key: {_size(key)}, "
        f"value: {_size(value)} with error: {failure}",
        file=sys.stderr,
    )


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"

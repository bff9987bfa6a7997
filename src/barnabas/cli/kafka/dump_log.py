"""`kafka-dump-log`: the content of segments, indexes and snapshots, in the words of Kafka."""

from __future__ import annotations

from barnabas.cli.kafka.flags import Flag, Flags, Given
from barnabas.cli.kafka.integers import whole_number

FAILURE = ""

NOT_OURS = "brokers of Barnabas write no such records"
DECODERS = ("key-decoder-class", "value-decoder-class")
PRINTING = (
    "print-data-log",
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
    *DECODERS,
)
"""Flags that print the records."""
STRING = "org.apache.kafka.tools.api.StringDecoder"

FLAGS = Flags(
    "Print the content of segments, their indexes, and producer snapshots.",
    (
        Flag("--files", "FILE[,...]", "segments, indexes, snapshots", required=True),
        Flag("--print-data-log", help="print keys and values of the records"),
        Flag("--deep-iteration", help="print the records of each batch"),
        Flag("--skip-record-metadata", help="print only keys and values of the records"),
        Flag("--verify-index-only", help="check indexes without printing their entries"),
        Flag("--index-sanity-check", help="only check whether indexes could be used"),
        Flag(
            "--max-message-size",
            "BYTES",
            "largest batch",
            whole_number,
            5 * 1024 * 1024,
            inert="batches of any size are read",
        ),
        Flag("--max-bytes", "BYTES", "stop before the batch that ends after this", whole_number),
        Flag(
            "--key-decoder-class",
            "CLASS",
            "how keys are read",
            default=STRING,
            optional_value=True,
        ),
        Flag(
            "--value-decoder-class",
            "CLASS",
            "how values are read",
            default=STRING,
            optional_value=True,
        ),
        Flag("--offsets-decoder", help="read records of __consumer_offsets"),
        Flag("--transaction-log-decoder", help="read records of __transaction_state"),
        Flag("--cluster-metadata-decoder", inert=NOT_OURS),
        Flag("--remote-log-metadata-decoder", inert=NOT_OURS),
        Flag("--share-group-state-decoder", inert=NOT_OURS),
    ),
)


def run(given: Given) -> int:
    """Dump one file after the other; what is wrong with them follows on standard error."""
    from barnabas.cli.kafka.log_dumps import Decode, LogDumps, decoder, deprecations
    from barnabas.cli.kafka.state_record_json import group_record, transaction_record

    decode: Decode
    notes: list[str] = []
    if "offsets-decoder" in given:
        decode = group_record
    elif "transaction-log-decoder" in given:
        decode = transaction_record
    else:
        names = [given[key] or STRING for key in DECODERS]
        decode, notes = decoder(*names), deprecations(*names)
    with_content = any(key in given for key in PRINTING)
    dumps = LogDumps(
        decode if with_content else None,
        deep=with_content or "deep-iteration" in given,
        bare="skip-record-metadata" in given,
        silent="verify-index-only" in given,
        sanity_only="index-sanity-check" in given,
        bytes_max=given["max-bytes"],
        notes=notes,
    )
    for path in given["files"].split(","):
        dumps.dump(path.strip())
    dumps.complain()
    return 0

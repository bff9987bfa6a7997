"""`kafka-streams-application-reset`: reset a Streams application, so that it begins again."""

from __future__ import annotations

from barnabas.cli.kafka.flags import COMMAND_CONFIG, Flag, Flags, Given
from barnabas.cli.kafka.offset_scenarios import SCENARIOS, exclusive

FAILURE = "ERROR: "

FLAGS = Flags(
    "Reset the offsets of a Streams application, and delete its internal topics. Stop all of its "
    "instances before, and clean up their local state afterwards.",
    (
        Flag("--application-id", "ID", "application.id of the application", required=True),
        Flag(
            "--bootstrap-server", "HOST:PORT[,...]", "brokers to connect to", str, "localhost:9092"
        ),
        Flag("--bootstrap-servers", "HOST:PORT[,...]", "deprecated: use --bootstrap-server"),
        COMMAND_CONFIG,
        Flag("--config-file", "FILE", "deprecated: use --command-config"),
        Flag("--input-topics", "TOPIC[,...]", "topics to begin again", many=True),
        Flag("--intermediate-topics", "TOPIC[,...]", "deprecated; topics to skip", many=True),
        Flag("--internal-topics", "TOPIC[,...]", "internal topics to delete", many=True),
        Flag("--force", help="remove members that are left in the group"),
        Flag("--dry-run", help="only show what would be done"),
        *SCENARIOS,
    ),
    excludes={**exclusive(), "config-file": ("command-config",)},
)


def run(given: Given) -> int:
    """Remove members, reset offsets, delete internal topics."""
    if "bootstrap-server" not in given and "bootstrap-servers" in given:
        given.values["bootstrap-server"] = given["bootstrap-servers"]
    from barnabas.cli.kafka.streams_reset import reset

    return reset(given, "config-file" if "config-file" in given else "command-config")

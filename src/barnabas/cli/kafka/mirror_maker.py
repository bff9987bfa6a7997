"""`kafka-mirror-maker`: the first MirrorMaker, over `barnabas mirror`."""

from __future__ import annotations

import sys

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError

TOOL = "kafka-mirror-maker"
COMMIT_MS_MAX = 30_000
"""A transaction stays open for no longer: the broker aborts it after transaction.timeout.ms."""

REFUSED = (
    "message.handler",
    "message.handler.args",
    "consumer.rebalance.listener",
    "rebalance.listener.args",
)

FLAGS = Flags(
    "Copy topics from one cluster to another, until it is stopped.",
    (
        Flag("--consumer.config", "FILE", "properties for the source", required=True),
        Flag("--producer.config", "FILE", "properties for the target", required=True),
        Flag("--include", "REGEX", "topics to copy; a comma means or"),
        Flag("--whitelist", "REGEX", "older name of --include"),
        Flag("--blacklist", "REGEX", "copy all topics but these"),
        Flag("--num.streams", "N", convert=int, inert="one event loop reads all partitions"),
        Flag(
            "--offset.commit.interval.ms",
            "MS",
            f"how long a transaction stays open (default: 1000; maximum: {COMMIT_MS_MAX})",
            int,
        ),
        Flag("--abort.on.send.failure", "BOOLEAN", "whether to end if a record cannot be sent"),
        Flag("--new.consumer", inert="there is no other one"),
        *(Flag(f"--{name}", "TEXT", "refused: Java classes cannot be loaded") for name in REFUSED),
    ),
)


def run(given: Given) -> int:
    """Copy until it is stopped."""
    arguments = words_of(given)
    from barnabas.cli.main import COMMANDS, parser

    command = next(command for command in COMMANDS if command.name == "mirror")
    parsed = parser(command).parse_args(arguments)
    code: int | None = parsed.run(parsed)
    return code or 0


def words_of(given: Given) -> list[str]:
    """Return the words of `barnabas mirror` that do the same; raise UsageError if none do."""
    for name in REFUSED:
        if name in given:
            raise UsageError(
                f"--{name} {given[name]}: Java classes cannot be loaded; change records in a "
                "program of your own, or in a pipeline (barnabas pipeline --help)"
            )
    chosen = [name for name in ("include", "whitelist", "blacklist") if name in given]
    if len(chosen) != 1:
        raise UsageError("whitelist must be specified" if not chosen else "give only --include")
    pattern = given[chosen[0]].strip().strip("\"'").replace(",", "|").replace(" ", "")
    words = ["--consumer.config", given["consumer.config"]]
    words += ["--producer.config", given["producer.config"]]
    words += ["--include", pattern] if chosen != ["blacklist"] else ["--include", ".*"]
    if chosen == ["blacklist"]:
        words += ["--exclude", pattern]
    interval_ms = given["offset.commit.interval.ms"]
    if interval_ms is not None:
        if interval_ms <= 0:
            raise UsageError(f"--offset.commit.interval.ms {interval_ms}: must be at least 1")
        words += ["--commit-interval", str(min(interval_ms, COMMIT_MS_MAX) / 1000)]
    if (given["abort.on.send.failure"] or "true").lower() != "true":
        print(
            f"{TOOL}: --abort.on.send.failure=false has no effect: records are never left out",
            file=sys.stderr,
        )
    return words

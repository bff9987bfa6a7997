"""`kafka-server-start`: run one broker with a properties file."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError

TOOL = "kafka-server-start"
DEFAULTS = {"listeners": "PLAINTEXT://:9092", "log.dirs": "/tmp/kafka-logs"}
"""Kafka's own, where `barnabas start` is more careful."""


def _override(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("must be property=value")
    return name, value


FLAGS = Flags(
    "Run one broker in the foreground, or in the background with -daemon.",
    (
        Flag("--override", "NAME=VALUE", "replace an option of the file", _override, many=True),
        Flag("--daemon", help="run in the background; output goes to $LOG_DIR/kafkaServer.out"),
        Flag("--name", "NAME", inert="processes have no names here"),
        Flag("--loggc", inert="there is no Java"),
    ),
    words="FILE",
    ignores_words=False,
)


def run(given: Given) -> int:
    """Run the broker until it is stopped; with -daemon, only start it."""
    if len(given.words) != 1:
        raise UsageError(f"USAGE: {TOOL} [-daemon] server.properties [--override property=value]*")
    file = given.words[0]
    settings = settings_of(file, dict(given["override"]))
    if given["daemon"]:
        _start_daemon(file, given["override"])
        return 0
    from barnabas.cli import start

    parser = argparse.ArgumentParser()
    start.configure(parser)
    words = ["--config", file]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    return start.run(parser.parse_args(words))


def settings_of(file: str, overrides: dict[str, str]) -> dict[str, str]:
    """Return the overrides, and Kafka's defaults of what the file leaves out."""
    from barnabas.cli.kafka.client_properties import read_file

    named = {**read_file(TOOL, file), **overrides}
    settings = {name: value for name, value in DEFAULTS.items() if name not in named}
    if "log.dir" in named:
        settings.pop("log.dirs", None)
    if "broker.id" not in named and "node.id" in named:
        settings["broker.id"] = named["node.id"]
    return {**settings, **overrides}


def _start_daemon(file: str, overrides: list[tuple[str, str]]) -> None:
    """Start the broker in a session of its own, as `nohup … &` does."""
    directory = Path(os.environ.get("LOG_DIR", "logs"))
    directory.mkdir(parents=True, exist_ok=True)
    words = [word for name, value in overrides for word in ("--override", f"{name}={value}")]
    with (directory / "kafkaServer.out").open("ab") as output:
        subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", TOOL, file, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

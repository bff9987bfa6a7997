"""`kafka-server-stop`: ask the brokers of this machine to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.kafka.flags import Flag, Flags, Given

PROGRAMS = ("barnabas", "barnabas.cli")
COMMANDS = ("start", "kafka-server-start")

FLAGS = Flags(
    "Send SIGTERM to the brokers that run on this machine: a controlled shutdown.",
    (
        Flag("--node-id", "N", "only the broker with this broker.id or node.id"),
        Flag("--process-role", "ROLE", inert="all processes are brokers"),
    ),
)


class RunningBroker(NamedTuple):
    """A process, the words after its command, and where relative paths begin."""

    pid: int
    words: Sequence[str]
    directory: Path


def run(given: Given) -> int:
    """Stop the brokers; without any, say so and fail."""
    found = [
        broker
        for broker in running_brokers(Path("/proc"))
        if given["node-id"] is None or broker_id(broker) == given["node-id"]
    ]
    if not found:
        print("No kafka server to stop")
        return 1
    for broker in found:
        os.kill(broker.pid, signal.SIGTERM)
    return 0


def running_brokers(processes: Path) -> Iterator[RunningBroker]:
    """Yield the brokers among the processes of Linux's /proc, but not this one."""
    for directory in processes.iterdir():
        if not directory.name.isdecimal() or int(directory.name) == os.getpid():
            continue
        try:
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            where = (directory / "cwd").resolve()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        arguments = broker_arguments(words)
        if arguments is not None:
            yield RunningBroker(int(directory.name), arguments, where)


def broker_arguments(words: Sequence[str]) -> list[str] | None:
    """Return the arguments of a command line that runs a broker; None for all others."""
    program = Path(words[0]).name if words else ""
    if not program.startswith(("python", "barnabas")):
        return None
    for index, word in enumerate(words[:-1]):
        if Path(word).name in PROGRAMS:
            command = words[index + 1].removesuffix(".sh")
            return [*words[index + 2 :]] if command in COMMANDS else None
    return None


def broker_id(broker: RunningBroker) -> str | None:
    """Return the broker.id that a broker was started with; None if it chose one itself."""
    from barnabas.cli.kafka.client_properties import read_file
    from barnabas.model.errors import ConfigError

    found = None
    words = list(broker.words)
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        if before == "--id":
            return word
        if before in ("--override", "--set"):
            name, _, value = word.partition("=")
            if name in ("broker.id", "node.id"):
                found = value
    if found is not None:
        return found
    for word in words:
        if word and not word.startswith("-") and (broker.directory / word).is_file():
            try:
                properties = read_file("", str(broker.directory / word))
            except ConfigError:
                continue
            return properties.get("broker.id", properties.get("node.id"))
    return None

"""Two brokers as real processes that log in to each other, on a ZooKeeper of the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tools.processes import wait_for_line


@contextmanager
def pair_of_brokers(
    directory: Path, zookeeper: str, options: Mapping[str, str], environment: Mapping[str, str] = {}
) -> Iterator[tuple[str, list[Path]]]:
    """Run two brokers whose only listener, IN, has SASL; yield its addresses, and the logs."""
    logs = []
    with ExitStack() as stack:
        for number in (1, 2):
            own = directory / str(number)
            own.mkdir()
            given = {
                "broker.id": str(number),
                "log.dirs": str(own / "data"),
                "zookeeper.connect": zookeeper,
                "listeners": "IN://localhost:0",
                "advertised.listeners": "IN://localhost:0",
                "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
                "inter.broker.listener.name": "IN",
                "offsets.topic.replication.factor": "1",
                **options,
            }
            file = own / "server.properties"
            file.touch(0o600)
            file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            logs.append(own / "broker.out")
            command = [str(Path(sys.executable).parent / "barnabas"), "start", "--config"]
            with logs[-1].open("wb") as output:
                process = subprocess.Popen(
                    [*command, str(file), "--log-level", "debug"],
                    env={**os.environ, **environment},
                    stdout=output,
                    stderr=output,
                )
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            wait_for_line(process, logs[-1], "is ready on", 60)
        ready = (log.read_text() for log in logs)
        addresses = [re.findall(r"ready on IN://(localhost:\d+)", text)[0] for text in ready]
        yield ",".join(addresses), logs

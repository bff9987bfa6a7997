"""Where Spark runs: the address of a master, and whether anybody is there.

Spark asks a standalone master for a whole minute, and then ends with stacks of calls that do not
name it. So a port where nobody listens is told before a JVM is started.
"""

from __future__ import annotations

import socket

from barnabas.model.errors import ConfigError

SCHEME = "spark://"
PATIENCE_S = 5.0
"""How long a master may take to accept a connection."""


def check_master(master: str) -> None:
    """Raise ConfigError if no standalone master listens where one should; others are Spark's."""
    if not master.startswith(SCHEME):
        return
    refusals = []
    for address in master.removeprefix(SCHEME).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(f"--master {master}: {address} must be HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S):
                return  # one of several is enough: the others wait to take over
        except (OSError, OverflowError) as failure:
            refusals.append(f"{address}: {getattr(failure, 'strerror', None) or failure}")
    raise ConfigError(
        f"--master {master}: no master of Spark listens there ({'; '.join(refusals)}); "
        "without --master, Spark runs on this machine alone"
    )

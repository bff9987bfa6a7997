"""Spark's own Kafka connector from Maven, for the PySpark that is installed.

`fetch` copies the connector and what PySpark does not bring into `.deps/spark-connector` once;
later calls only look. Artifacts are named one by one: Spark's descriptions lead to repositories
that may be out of reach, and not every repository has every part of every version. The connector is
the newest that could be had; it runs on the PySpark after it as well.

    python -m tools.spark_connector
"""

from __future__ import annotations

import fcntl
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tools.apache_kafka import ROOT, Unavailable, copy_jars

VERSION = "4.2.0"
ARTIFACTS = [
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    # For delegation tokens, which nobody here uses; it is the same in all of 4.
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
]


@dataclass(frozen=True)
class Connector:
    """A version of the connector, as the jars that a session needs."""

    version: str
    jars: tuple[Path, ...]

    @property
    def setting(self) -> str:
        """The value of `spark.jars`."""
        return ",".join(map(str, self.jars))


def fetch(cache: Path = ROOT / ".deps") -> Connector:
    """Return the connector; raise Unavailable where it cannot be had."""
    if find_spec("pyspark") is None:
        raise Unavailable("PySpark is not installed")
    home = cache / "spark-connector"
    home.mkdir(parents=True, exist_ok=True)
    jars = home / f"jars-{VERSION}"
    with (home / "lock").open("w") as lock:
        # Parallel test workers ask at the same time: one fetches, the others find it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            copy_jars(ARTIFACTS, jars, f"Spark's Kafka connector {VERSION}", excluded=("*", "*"))
    return Connector(VERSION, tuple(sorted(jars.glob("*.jar"))))


def main() -> int:
    """Fetch, and print what a session needs."""
    try:
        found = fetch()
    except Unavailable as why:
        print(why, file=sys.stderr)
        return 1
    print(f"version {found.version}, spark.jars={found.setting}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

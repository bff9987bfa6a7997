"""Apache Kafka from Maven: fetched by coordinates, run as one broker or as its own tools.

`Distribution.fetch("3.9")` copies the server, the tools and their dependencies into
`.deps/kafka-3.9` once; later calls only look. `Distribution.start` runs one KRaft broker (broker
and controller in one process) on free ports, and `Distribution.run` runs a tool such as
`kafka-topics` as its Java class, so nothing of the shell distribution is needed. Where Java or
Maven is missing `Unavailable` says so in one line; callers print it or skip.

    python -m tools.apache_kafka fetch 3.9
    python -m tools.apache_kafka start 3.9 --port 9092
    python -m tools.apache_kafka run 4 kafka-topics --bootstrap-server 127.0.0.1:9092 --list
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.processes import RunningBroker, free_port, wait_for_line

ROOT = Path(__file__).resolve().parent.parent
RELEASES = {"3.9": "3.9.2", "4": "4.3.0"}

# Both releases ask for slf4j 1.7; the simple binding is set by system properties alone.
LOGGING_VERSION = "1.7.36"

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}
# What only 3.9 has, or has in its older, Scala home.
TOOLS_3 = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
    "kafka-mirror-maker": "kafka.tools.MirrorMaker",
    "zookeeper-security-migration": "kafka.admin.ZkSecurityMigrator",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
}

POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
      <exclusions><exclusion>
        <groupId>{excluded[0]}</groupId><artifactId>{excluded[1]}</artifactId>
      </exclusion></exclusions>
    </dependency>
"""


class Unavailable(Exception):
    """Apache Kafka cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Distribution:
    """One release of Apache Kafka, as jars in a directory."""

    release: str
    jars: Path

    @classmethod
    def fetch(cls, release: str, cache: Path = ROOT / ".deps") -> Distribution:
        """Return the release, copying its jars from Maven the first time."""
        version = RELEASES[release]
        if shutil.which("java") is None:
            raise Unavailable("Java is not installed (17 or later runs Apache Kafka)")
        home = cache / f"kafka-{release}"
        home.mkdir(parents=True, exist_ok=True)
        with (home / "lock").open("w") as lock:
            # Parallel test workers ask at the same time: one fetches, the others find it done.
            fcntl.flock(lock, fcntl.LOCK_EX)
            jars = home / f"jars-{version}"
            if not jars.is_dir():
                artifacts = [
                    ("org.apache.kafka", "kafka_2.13", version),
                    ("org.apache.kafka", "kafka-tools", version),
                    ("org.slf4j", "slf4j-simple", LOGGING_VERSION),
                ]
                copy_jars(artifacts, jars, f"Apache Kafka {version}")
        return cls(release, jars)

    @property
    def version(self) -> str:
        """The full version, such as 3.9.2."""
        return RELEASES[self.release]

    @property
    def classes(self) -> Mapping[str, str]:
        """The release's tools by their usual names."""
        return TOOLS | TOOLS_3 if self.release.startswith("3") else TOOLS

    def command(
        self, tool: str, *arguments: str, heap: str = "256m", java_options: Sequence[str] = ()
    ) -> list[str]:
        """Return the argv that runs a tool by its usual name."""
        return [
            "java",
            f"-Xmx{heap}",
            "-Djava.awt.headless=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
            *java_options,
            "-cp",
            f"{self.jars}/*",
            self.classes[tool],
            *arguments,
        ]

    def run(
        self,
        tool: str,
        *arguments: str,
        input: str | None = None,
        timeout_s: float = 60,
        java_options: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end and return its exit code and output."""
        # The tools live for a second or two: the optimising compiler would only cost start-up time.
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
        return subprocess.run(
            self.command(tool, *arguments, java_options=[*quick, *java_options]),
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        options: Mapping[str, str] | None = None,
        heap: str = "1G",
        timeout_s: float = 180,
        wait: bool = True,
    ) -> RunningBroker:
        """Format `data_dir` if it is new, start one broker there and wait until it serves.

        The garbage collector flags are those of the project's own start script, so a measured
        broker is the one that people run.
        """
        port = port or free_port()
        properties = data_dir / "server.properties"
        if not properties.exists():
            self._format(data_dir, properties, port, options or {})
        log = data_dir / "server.log"
        argv = self.command(
            "kafka-server-start",
            str(properties),
            heap=heap,
            java_options=[
                f"-Xms{heap}",
                "-server",
                "-XX:+UseG1GC",
                "-XX:MaxGCPauseMillis=20",
                "-XX:InitiatingHeapOccupancyPercent=35",
                "-XX:+ExplicitGCInvokesConcurrent",
            ],
        )
        with log.open("wb") as output:  # a line of an earlier life says nothing of this one
            process = subprocess.Popen(argv, stdout=output, stderr=output)
        broker = RunningBroker(
            name=f"Apache Kafka {self.version}",
            process=process,
            bootstrap=f"127.0.0.1:{port}",
            log_dir=data_dir / "logs",
        )
        if wait:
            wait_for_line(process, log, "Kafka Server started", timeout_s)
        return broker

    def join(
        self,
        data_dir: Path,
        number: int,
        zookeeper: str,
        *,
        port: int = 0,
        options: Mapping[str, str] | None = None,
        heap: str = "256m",
        timeout_s: float = 180,
        wait: bool = True,
        java_options: Sequence[str] = (),
    ) -> RunningBroker:
        """Start a broker of a cluster that ZooKeeper coordinates (only 3.9 can)."""
        port = port or free_port()
        settings = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(data_dir / "logs"),
            "zookeeper.connect": zookeeper,
            "group.initial.rebalance.delay.ms": "0",
            **(options or {}),
        }
        data_dir.mkdir(parents=True, exist_ok=True)
        properties, log = data_dir / "server.properties", data_dir / "server.log"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        told = [
            "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaServer=info",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            *java_options,
        ]
        argv = self.command("kafka-server-start", str(properties), heap=heap, java_options=told)
        with log.open("wb") as output:
            process = subprocess.Popen(argv, stdout=output, stderr=output)
        if wait:
            wait_for_line(process, log, f"[KafkaServer id={number}] started", timeout_s)
        name = f"Apache Kafka {self.version}"
        return RunningBroker(name, process, f"127.0.0.1:{port}", data_dir / "logs")

    def _format(
        self, data_dir: Path, properties: Path, port: int, options: Mapping[str, str]
    ) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        controller_port = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "log.dirs": str(data_dir / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **options,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        cluster_id = self.run("kafka-storage", "random-uuid").stdout.strip()
        done = self.run("kafka-storage", "format", "-t", cluster_id, "-c", str(properties))
        if done.returncode != 0:
            properties.unlink()
            raise Unavailable(f"kafka-storage format failed: {done.stdout}{done.stderr}")


def copy_jars(
    artifacts: Sequence[tuple[str, str, str]],
    jars: Path,
    what: str,
    excluded: tuple[str, str] = ("org.slf4j", "slf4j-reload4j"),
) -> None:
    """Have Maven copy artifacts (group, name, version) and what they need, or nothing.

    Of what they need, `excluded` is left out; ("*", "*") leaves all of it out.
    """
    if shutil.which("mvn") is None:
        raise Unavailable(f"Maven (mvn) is not installed, so {what} cannot be fetched")
    home = jars.parent
    dependencies = "".join(
        DEPENDENCY.format(group=group, artifact=artifact, version=version, excluded=excluded)
        for group, artifact, version in artifacts
    )
    (home / "pom.xml").write_text(POM.format(dependencies=dependencies))
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={scratch}/jars"],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stdout + done.stderr).strip().splitlines()[:1]
            raise Unavailable(f"Maven could not fetch {what}: {reason}")
        os.rename(f"{scratch}/jars", jars)


def main() -> int:
    """Fetch, start or run from the command line."""
    parser = argparse.ArgumentParser(description="Apache Kafka from Maven.")
    actions = parser.add_subparsers(dest="action", required=True)
    fetch = actions.add_parser("fetch", help="copy the jars into .deps")
    start = actions.add_parser("start", help="run one broker in the foreground")
    run = actions.add_parser("run", help="run a command line tool by its usual name")
    for action in (fetch, start, run):
        action.add_argument("release", choices=sorted(RELEASES))
    start.add_argument("--port", type=int, default=9092)
    start.add_argument("--heap", default="1G")
    start.add_argument("--data-dir", type=Path)
    run.add_argument("tool", choices=sorted(TOOLS))
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        kafka = Distribution.fetch(args.release)
    except Unavailable as why:
        print(why, file=sys.stderr)
        return 1
    if args.action == "fetch":
        print(f"Apache Kafka {kafka.version} is in {kafka.jars}")
    elif args.action == "run":
        os.execvp("java", kafka.command(args.tool, *args.arguments))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            data_dir = args.data_dir or Path(scratch)
            broker = kafka.start(data_dir, port=args.port, heap=args.heap)
            print(f"{broker.name} is ready at {broker.bootstrap}", flush=True)
            try:
                return broker.process.wait()
            except KeyboardInterrupt:
                broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

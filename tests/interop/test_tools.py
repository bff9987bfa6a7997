"""The Java tools against the broker: what an administrator of Kafka types, unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution

from barnabas import KafkaAdminClient

pytestmark = pytest.mark.interop


def create(tool: Tool, topic: str, *arguments: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic, *arguments)


def produce(tool: Tool, topic: str, lines: list[str], *settings: str, codec: str = "none") -> None:
    """Produce `key:value` lines; the tool's own option decides the codec, not a property."""
    properties = [f"--producer-property={setting}" for setting in settings]
    keyed = ["--property=parse.key=true", "--property=key.separator=:"]
    text = "".join(f"{line}\n" for line in lines)
    chosen = [f"--topic={topic}", f"--compression-codec={codec}"]
    tool("kafka-console-producer", *chosen, *keyed, *properties, input=text)


def consume(tool: Tool, topic: str, count: int, offset: str = "earliest") -> list[str]:
    """Read partition 0 by assignment; the tool joins no group when a partition is named."""
    shown = ["print.key=true", "key.separator=:", "print.offset=true", "print.headers=true"]
    out = tool(
        "kafka-console-consumer",
        "--topic",
        topic,
        "--partition=0",
        f"--offset={offset}",
        f"--max-messages={count}",
        "--timeout-ms=20000",
        *[f"--property={one}" for one in shown],
    )
    # A newer tool begins by saying which of these options it would rather have under another name.
    return [line for line in out.splitlines() if line.startswith("Offset:")]


def offsets(tool: Tool, topic: str, time: str) -> list[str]:
    return tool("kafka-get-offsets", "--topic", topic, "--time", time).split()


def test_topics(tool: Tool, name: str) -> None:
    create(tool, name, "--partitions=3", "--config=cleanup.policy=compact")
    assert name in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "cleanup.policy=compact" in described
    assert (
        len(re.findall(r"Partition: \d\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 3
    )
    assert "already exists" in tool("kafka-topics", "--create", "--topic", name, code=1)
    tool("kafka-topics", "--alter", "--topic", name, "--partitions=5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", name)
    tool("kafka-topics", "--delete", "--topic", name)
    assert name not in tool("kafka-topics", "--list").split()


def test_configs(tool: Tool, name: str) -> None:
    create(tool, name)
    entity = ["--entity-type=topics", f"--entity-name={name}"]
    change = "--add-config=max.message.bytes=5000,cleanup.policy=[compact,delete]"
    tool("kafka-configs", *entity, "--alter", change)
    described = tool("kafka-configs", *entity, "--describe")
    assert "max.message.bytes=5000" in described
    assert "cleanup.policy=compact,delete" in described
    tool("kafka-configs", *entity, "--alter", "--delete-config=max.message.bytes")
    assert "max.message.bytes" not in tool("kafka-configs", *entity, "--describe")
    everything = tool("kafka-configs", *entity, "--describe", "--all")
    assert "retention.ms=604800000 sensitive=false" in everything


def test_broker_configs(tool: Tool) -> None:
    default = ["--entity-type=brokers", "--entity-default"]
    tool("kafka-configs", *default, "--alter", "--add-config=log.cleaner.io.buffer.load.factor=0.8")
    assert "log.cleaner.io.buffer.load.factor=0.8" in tool("kafka-configs", *default, "--describe")
    tool("kafka-configs", *default, "--alter", "--delete-config=log.cleaner.io.buffer.load.factor")


def test_levels_of_loggers(tool: Tool, bootstrap: str) -> None:
    """kafka-configs changes only loggers that the broker has described before."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        broker = admin.describe_cluster()["brokers"][0]["broker_id"]
    loggers = ("kafka-configs", "--entity-type=broker-loggers", f"--entity-name={broker}")
    assert "kafka.request.logger=" in tool(*loggers, "--describe")
    tool(*loggers, "--alter", "--add-config=kafka.request.logger=FATAL,barnabas.console=TRACE")
    described = tool(*loggers, "--describe")
    assert "kafka.request.logger=FATAL " in described
    assert "barnabas.request=FATAL " in described
    assert "barnabas.console=TRACE " in described
    tool(*loggers, "--alter", "--delete-config=kafka.request.logger,barnabas.console")
    assert "kafka.request.logger=FATAL " not in tool(*loggers, "--describe")
    unknown = tool(*loggers, "--alter", "--add-config=no.such.logger=INFO", code=1)
    assert "Invalid broker logger(s): no.such.logger" in unknown
    refused = tool(*loggers, "--alter", "--add-config=kafka.request.logger=LOUD", code=1)
    assert "Cannot set the log level of kafka.request.logger to LOUD" in refused


def test_console_produce_and_consume(tool: Tool, name: str) -> None:
    create(tool, name)
    lines = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        some = [f"{codec}-{number}:value {number}" for number in range(100)]
        produce(tool, name, some, codec=codec)
        lines += some
    expected = [f"Offset:{n}:NO_HEADERS:{line}" for n, line in enumerate(lines)]
    assert consume(tool, name, 500) == expected
    assert consume(tool, name, 2, offset="250") == expected[250:252]


@pytest.mark.parametrize("acks", ["0", "1"])
def test_without_idempotence(tool: Tool, name: str, acks: str) -> None:
    create(tool, name)
    produce(tool, name, ["a:1", "b:2"], f"acks={acks}", "enable.idempotence=false")
    assert consume(tool, name, 2) == ["Offset:0:NO_HEADERS:a:1", "Offset:1:NO_HEADERS:b:2"]


def test_offsets_and_delete_records(tool: Tool, name: str, tmp_path: Path) -> None:
    create(tool, name, "--partitions=2")
    produce(tool, name, [f"same:{number}" for number in range(10)], "batch.size=0")
    (full,) = [line for line in offsets(tool, name, "latest") if line.endswith(":10")]
    partition = full.split(":")[1]
    assert f"{name}:{partition}:0" in offsets(tool, name, "earliest")
    assert re.fullmatch(rf"{re.escape(name)}:{partition}:\d", max(offsets(tool, name, "-3")))
    plan = tmp_path / "offsets.json"
    chosen = {"topic": name, "partition": int(partition), "offset": 4}
    plan.write_text(json.dumps({"partitions": [chosen], "version": 1}))
    said = tool("kafka-delete-records", f"--offset-json-file={plan}")
    assert "low_watermark: 4" in said
    assert f"{name}:{partition}:4" in offsets(tool, name, "earliest")


def test_api_versions(tool: Tool, bootstrap: str) -> None:
    out = tool("kafka-broker-api-versions")
    assert out.startswith(bootstrap)
    for api in ("Produce(0)", "Fetch(1)", "ListOffsets(2)", "Metadata(3)", "InitProducerId(22)"):
        assert re.search(rf"{re.escape(api)}: \d+ to \d+ \[usable: \d+\]", out), api


def test_log_dirs(tool: Tool, name: str) -> None:
    create(tool, name)
    produce(tool, name, ["a:1"])
    out = tool("kafka-log-dirs", "--describe", f"--topic-list={name}")
    answer = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    (directory,) = answer["brokers"][0]["logDirs"]
    assert directory["error"] is None
    (partition,) = directory["partitions"]
    assert partition["partition"] == f"{name}-0"
    assert partition["size"] > 0


def test_cluster_id(kafka: Distribution, bootstrap: str) -> None:
    done = kafka.run("kafka-cluster", "cluster-id", "--bootstrap-server", bootstrap)
    assert re.search(r"Cluster ID: \S{22}", done.stdout), done.stdout + done.stderr


def test_performance_tool_with_idempotence(
    kafka: Distribution, tool: Tool, bootstrap: str, name: str
) -> None:
    create(tool, name, "--partitions=3")
    done = kafka.run(
        "kafka-producer-perf-test",
        f"--topic={name}",
        "--num-records=50000",
        "--record-size=100",
        "--throughput=-1",
        "--producer-props",
        f"bootstrap.servers={bootstrap}",
        "enable.idempotence=true",
        "acks=all",
    )
    assert "50000 records sent" in done.stdout, done.stdout + done.stderr
    assert sum(int(line.split(":")[2]) for line in offsets(tool, name, "latest")) == 50_000

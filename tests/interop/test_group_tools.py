"""Apache Kafka's tools for groups and transactions, and its reading of the coordinators' topics."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.compat.samples import until_deadline
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution
from tools.processes import RunningBroker

from barnabas.metadata.partition_for import partition_for

pytestmark = pytest.mark.interop

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def admin(kafka: Distribution, bootstrap: str) -> Tool:
    """Run a tool of Kafka by its class to its end and return what it printed."""

    def run(tool: str, *arguments: str, code: int = 0) -> str:
        argv = kafka.command("kafka-topics")
        argv[argv.index(f"{kafka.jars}/*") + 1] = tool
        done = subprocess.run(
            [*argv, "--bootstrap-server", bootstrap, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return done.stdout if code == 0 else output

    return run


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, value=b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int, note: str = "") -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    where = TopicPartition(topic, 0, offset, metadata=note)
    consumer.commit(offsets=[where], asynchronous=False)
    consumer.close()


def begin(bootstrap: str, transactional_id: str, topic: str) -> Producer:
    """Return a producer with a record in an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, value=b"open", partition=0)
    assert producer.flush(60) == 0
    return producer


def decoded(kafka: Distribution, broker: RunningBroker, topic: str, key: str, how: str) -> str:
    """Return what Kafka's inspector reads in the partition that keeps a coordinator's key."""
    (directory,) = broker.log_dir.rglob(f"{topic}-{partition_for(key, 50)}")
    segment: Path = max(directory.glob("*.log"))
    done = kafka.run("kafka-dump-log", f"--files={segment}", how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr
    assert "isvalid: false" not in done.stdout
    return done.stdout


def test_groups_are_described_reset_and_deleted(
    tool: Tool, admin: Tool, bootstrap: str, name: str
) -> None:
    tool("kafka-topics", "--create", "--topic", name)
    produce(bootstrap, name, 10)
    group = f"group-of-{name}"
    commit(bootstrap, group, name, 4)
    groups = (GROUPS,)
    assert group in admin(*groups, "--list").split()
    described = admin(*groups, "--describe", "--group", group)
    assert re.search(rf"{re.escape(group)}\s+{re.escape(name)}\s+0\s+4\s+10\s+6\s", described)
    reset = (*groups, "--reset-offsets", "--group", group, "--topic", name, "--to-earliest")
    assert re.search(rf"{re.escape(name)}\s+0\s+0", admin(*reset, "--dry-run"))
    admin(*reset, "--execute")
    described = admin(*groups, "--describe", "--group", group)
    assert re.search(rf"{re.escape(name)}\s+0\s+0\s+10\s+10\s", described)
    admin(*groups, "--delete-offsets", "--group", group, "--topic", name)
    admin(*groups, "--delete", "--group", group)
    assert group not in admin(*groups, "--list").split()


def test_transactions_are_listed_described_and_aborted(
    tool: Tool, admin: Tool, bootstrap: str, name: str
) -> None:
    tool("kafka-topics", "--create", "--topic", name)
    producer = begin(bootstrap, name, name)
    listed = admin(TRANSACTIONS, "list")
    assert re.search(rf"{re.escape(name)}\s+\d+\s+\d+\s+Ongoing", listed), listed
    described = admin(TRANSACTIONS, "describe", "--transactional-id", name)
    assert re.search(rf"{re.escape(name)}\s.*Ongoing.*{re.escape(name)}-0", described), described
    found = admin(TRANSACTIONS, "describe-producers", "--topic", name, "--partition", "0")
    assert re.search(r"^\d+\s+0\s+", found, re.MULTILINE), found
    where = ("--topic", name, "--partition", "0", "--start-offset", "0")
    admin(TRANSACTIONS, "abort", *where)
    ends = tool("kafka-get-offsets", "--topic", name, "--time", "-1")
    assert ends.split() == [f"{name}:0:2"]  # the record, and the marker
    found = admin(TRANSACTIONS, "describe-producers", "--topic", name, "--partition", "0")
    assert re.search(r"^\d+\s+0\s.*\sNone\s*$", found, re.MULTILINE), found
    producer.abort_transaction(60)


def test_the_topic_of_offsets_is_readable(
    kafka: Distribution, tool: Tool, broker: RunningBroker, name: str
) -> None:
    tool("kafka-topics", "--create", "--topic", name)
    produce(broker.bootstrap, name, 1)
    group = f"group-of-{name}"
    commit(broker.bootstrap, group, name, 1, "a note")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.instance.id": "one",
            "client.id": "reader",
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([name])
    for _ in until_deadline("the member has its partition"):
        consumer.poll(0.1)
        if consumer.assignment():
            break
    assert consumer.assignment() == [TopicPartition(name, 0)]
    consumer.close()
    out = decoded(kafka, broker, "__consumer_offsets", group, "--offsets-decoder")
    offset = next(line for line in out.splitlines() if "a note" in line)
    assert group in offset
    assert name in offset
    (member,) = [line for line in out.splitlines() if "reader" in line]
    for word in (group, "consumer", "range", "one"):
        assert word in member


def test_the_topic_of_transactions_is_readable(
    kafka: Distribution, tool: Tool, broker: RunningBroker, name: str
) -> None:
    tool("kafka-topics", "--create", "--topic", name)
    begin(broker.bootstrap, name, name).commit_transaction(60)
    states: list[str] = []
    for _ in until_deadline("the transaction is complete"):
        out = decoded(kafka, broker, "__transaction_state", name, "--transaction-log-decoder")
        lines = [line for line in out.splitlines() if name in line]
        # 3.9 prints the state's title, 4 its number.
        found = [re.search(r"state=(\w+)|\"transactionStatus\":(\d)", line) for line in lines]
        states = [each[1] or each[2] for each in found if each is not None]
        if len(states) == 4:
            break
    titles = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert states in (titles, ["0", "1", "2", "4"])

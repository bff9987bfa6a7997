"""`--zookeeper`: what is printed, and what is written for the controller, in a tree in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner
from tests.unit.controller.trees import prepared

from barnabas.cli.kafka import tree as tree_module
from barnabas.coordination.contract import Coordination, NoNode
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.config_store import ConfigStore

DEPRECATED = (
    "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka.\n"
)


class Tree:
    """A tree of two brokers and a topic, which tools reach as if it were ZooKeeper."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {
            nodes.broker_path(0): self._broker(),
            nodes.broker_path(2): self._broker(),
            nodes.topic_path("t"): nodes.TopicAssignment(bytes(16), {0: (0,), 1: (0,)}).encode(),
        }
        self.configs: dict[str, dict[str, str]] = {}
        self.addresses: list[str] = []

    @staticmethod
    def _broker() -> bytes:
        endpoints = [("PLAINTEXT", "h", 9092)]
        return nodes.BrokerRegistration(endpoints, {"PLAINTEXT": "PLAINTEXT"}, None, 0).encode()

    def run(
        self, connect: str, work: Callable[[Coordination], Awaitable[Any]], _: object = None
    ) -> Any:
        """Do the work in a tree with the nodes, and keep what it has written."""
        self.addresses.append(connect)

        async def session() -> Any:
            memory = await prepared(MemoryStore())
            for path, data in self.nodes.items():
                await memory.create(path, data, make_parents=True)
            result = await work(memory)
            for path in (nodes.LEGACY_REASSIGNMENT, nodes.LEGACY_PREFERRED_ELECTION):
                try:
                    self.nodes[path] = (await memory.get(path))[0]
                except NoNode:
                    self.nodes.pop(path, None)
            store = ConfigStore(memory)
            for kind in ("topics", "brokers"):
                for name, options in (await store.get_all(kind)).items():
                    self.configs[f"{kind}/{name}"] = options
            return result

        return asyncio.run(session())


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree = Tree()
    monkeypatch.setattr(tree_module, "on_tree", tree.run)
    monkeypatch.setattr("barnabas.cli.kafka.reassignment_by_tree.on_tree", tree.run)
    return tree


@pytest.fixture
def reassign(capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-reassign-partitions.sh", None, capsys)


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def document(replicas: list[list[int]], topic: str = "t") -> str:
    entries = [
        {"topic": topic, "partition": n, "replicas": ids, "log_dirs": ["any"] * len(ids)}
        for n, ids in enumerate(replicas)
    ]
    return json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"))


def test_the_line_of_the_books(tree: Tree, reassign: RunTool) -> None:
    Path("test.json").write_text('{"topics":[{"topic":"t"}],"version":1}')
    line = (
        "--zookeeper localhost:2181/kafka --generate --topics-to-move-json-file test.json "
        "--broker-list 0,2"
    )
    run = reassign(*line.split())
    assert (run.code, run.err) == (0, "")
    assert tree.addresses == ["localhost:2181/kafka"]
    warning, title, current, blank, other_title, proposed = run.out.splitlines()
    assert f"{warning}\n" == DEPRECATED
    assert (title, blank) == ("Current partition replica assignment", "")
    assert current == document([[0], [0]])
    assert other_title == "Proposed partition reassignment configuration"
    assert proposed in (document([[0], [2]]), document([[2], [0]]))
    Path("test.json").write_text('{"topics":[{"topic":"none-such"}]}')
    run = reassign(*line.split())
    assert (run.code, run.out) == (1, f"{DEPRECATED}Error: Topic none-such not found.\n")


def test_a_reassignment_from_start_to_end(tree: Tree, reassign: RunTool) -> None:
    Path("plan.json").write_text(document([[2], [0]]))
    words = ("--zookeeper", "zk", "--reassignment-json-file", "plan.json")
    run = reassign(*words, "--execute", "--throttle", "5000")
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"{DEPRECATED}Current partition replica assignment\n\n{document([[0], [0]])}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed.\n"
        "The inter-broker throttle limit was set to 5000 B/s\n"
        "Successfully started partition reassignments for t-0,t-1\n"
    )
    written = nodes.decode_partitions("", tree.nodes[nodes.LEGACY_REASSIGNMENT])
    assert written == [("t", 0, (2,)), ("t", 1, (0,))]
    assert tree.configs["topics/t"] == {
        "leader.replication.throttled.replicas": "0:0",
        "follower.replication.throttled.replicas": "0:2",
    }
    assert tree.configs["brokers/2"]["follower.replication.throttled.rate"] == "5000"
    run = reassign(*words, "--execute")
    assert run.code == 1
    assert "Cannot execute because there is an existing partition assignment." in run.out
    warning = (
        f"{DEPRECATED}Warning: because you are using the deprecated --zookeeper option, the "
        "results may be incomplete.  Use --bootstrap-server instead for more accurate results.\n"
        "Status of partition reassignment:\n"
    )
    run = reassign(*words, "--verify")
    assert run.out == warning + "".join(
        f"Reassignment of partition t-{number} is still in progress.\n" for number in (0, 1)
    )
    del tree.nodes[nodes.LEGACY_REASSIGNMENT]  # as the controller does
    moved = nodes.TopicAssignment(bytes(16), {0: (2,), 1: (0,)})
    tree.nodes[nodes.topic_path("t")] = moved.encode()
    run = reassign(*words, "--verify")
    assert run.out == (
        f"{warning}Reassignment of partition t-0 is completed.\n"
        "Reassignment of partition t-1 is completed.\n"
        "Clearing broker-level throttles on brokers 0,2\n"
        "Clearing topic-level throttles on topic t\n"
    )


def test_throttles_are_cleared(tree: Tree, reassign: RunTool) -> None:
    throttled = {"leader.replication.throttled.replicas": "0:0", "retention.ms": "5"}
    tree.nodes[nodes.config_path("topics", "t")] = nodes.encode_config(throttled)
    Path("plan.json").write_text(document([[0], [0]]))
    words = ("--zookeeper", "zk", "--verify", "--reassignment-json-file", "plan.json")
    assert reassign(*words, "--preserve-throttles").code == 0
    assert tree.configs["topics/t"] == throttled
    assert reassign(*words).code == 0
    assert tree.configs["topics/t"] == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (document([[0]], "none-such"), "contains non-existent partitions: none-such-0"),
        (document([[0], [7]]), "The proposed assignment contains non-existent brokerIDs: 7"),
        (document([[0]]).replace("any", "/data"), "bootstrap-server needs to be provided when"),
    ],
)
def test_wrong_plans(tree: Tree, reassign: RunTool, content: str, text: str) -> None:
    Path("plan.json").write_text(content)
    run = reassign("--zookeeper", "zk", "--execute", "--reassignment-json-file", "plan.json")
    assert run.code == 1
    assert text in run.out
    assert nodes.LEGACY_REASSIGNMENT not in tree.nodes


def test_what_zookeeper_cannot_do(tree: Tree, reassign: RunTool) -> None:
    run = reassign("--zookeeper", "zk", "--list")
    assert run.code == 1
    assert 'Option "[zookeeper]" can\'t be used with action "[list]"' in run.err
    words = ("--execute", "--additional", "--reassignment-json-file", "f")
    run = reassign("--zookeeper", "zk", *words)
    assert run.code == 1
    assert 'You must specify --bootstrap-server when using "[additional]"' in run.err
    assert "Please specify --bootstrap-server" in reassign("--list").err


def test_preferred_replicas(
    tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elect = runner("kafka-preferred-replica-election.sh", None, capsys)
    entries = [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 5}]
    Path("partitions.json").write_text(json.dumps({"partitions": entries}))
    head = (
        "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: "
        "KAFKA-8405\n"
        "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
        "Use --bootstrap-server instead to specify a broker to connect to.\n"
    )
    words = ("--zookeeper", "localhost:2181/kafka")
    run = elect(*words, "--path-to-json-file", "partitions.json")
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"{head}Created preferred replica election path with t-1\n"
        "Successfully started preferred replica election for partitions Set(t-1)\n"
        "Skipping preferred replica leader election for partition t-5 since it doesn't exist.\n"
    )
    written = nodes.decode_partitions("", tree.nodes[nodes.LEGACY_PREFERRED_ELECTION])
    assert written == [("t", 1, ())]
    run = elect(*words)
    assert run.code == 1
    assert run.err == (
        "Admin command failed: Preferred replica leader election currently in progress for t-1. "
        "Aborting operation\n"
    )
    del tree.nodes[nodes.LEGACY_PREFERRED_ELECTION]
    run = elect(*words)
    assert "Created preferred replica election path with t-0,t-1\n" in run.out

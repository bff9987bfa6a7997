"""`barnabas topics` against a real broker, and the exact shape of what it prints."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.network.scripted_broker import Script, ScriptedBroker

from barnabas.cli.main import main
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_the_life_of_a_topic(barnabas: Any) -> None:
    created = barnabas("topics", "create", "life", "--partitions", "2")
    assert created == (0, "created topic life\n", "")
    again = barnabas("topics", "create", "life")
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith("barnabas topics create: life: ")
    assert again.err.endswith("(TOPIC_ALREADY_EXISTS)\n")
    forgiven = barnabas("topics", "create", "life", "--if-not-exists")
    assert forgiven == (0, "topic life already exists\n", "")
    listed = json.loads(barnabas("topics", "list", "--json").out)
    [entry] = [entry for entry in listed if entry["name"] == "life"]
    assert (entry["partitions"], entry["replication_factor"], entry["internal"]) == (2, 1, False)
    grown = barnabas("topics", "alter", "life", "--partitions", "5")
    assert grown == (0, "topic life now has 5 partitions\n", "")
    shrunk = barnabas("topics", "alter", "life", "--partitions", "1")
    assert shrunk.code == 1
    assert "(INVALID_PARTITIONS)" in shrunk.err
    assert barnabas("topics", "delete", "life") == (0, "deleted topic life\n", "")
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in barnabas("topics", "delete", "life").err
    missing = barnabas("topics", "delete", "life", "--if-exists")
    assert missing == (0, "topic life does not exist\n", "")


def test_several_topics_at_once_report_each(barnabas: Any, topic: str) -> None:
    run = barnabas("topics", "create", "new-beside-old", topic, "--json")
    assert run.code == 1
    outcomes = {entry["name"]: entry for entry in json.loads(run.out)}
    assert outcomes["new-beside-old"]["created"] is True
    assert outcomes[topic]["created"] is False
    assert outcomes[topic]["error"] == "TOPIC_ALREADY_EXISTS"


def test_options_are_given_at_creation(barnabas: Any) -> None:
    barnabas("topics", "create", "with-options", "--config", "retention.ms=5000")
    described = barnabas("configs", "describe", "--topic", "with-options", "--json").out
    assert {entry["name"]: entry["value"] for entry in json.loads(described)} == {
        "retention.ms": "5000"
    }
    refused = barnabas("topics", "create", "bad-options", "--config", "retention.ms=soon")
    assert refused.code == 1
    assert "(INVALID_CONFIG)" in refused.err


def test_a_description_has_offsets_and_sizes(barnabas: Any, topic: str, produce: Any) -> None:
    produce(topic, "a\nb\n", "--partition", "1")
    [document] = json.loads(barnabas("topics", "describe", topic, "--json").out)
    partitions = {entry["partition"]: entry for entry in document["partitions"]}
    assert sorted(partitions) == [0, 1, 2]
    assert (partitions[1]["earliest_offset"], partitions[1]["latest_offset"]) == (0, 2)
    assert partitions[1]["size_bytes"] > 0
    assert partitions[0]["size_bytes"] == 0
    assert partitions[0]["isr"] == partitions[0]["replicas"] == [0]


def test_a_missing_topic_is_described_as_missing(barnabas: Any, topic: str) -> None:
    run = barnabas("topics", "describe", "missing", topic)
    assert run.code == 1
    assert f"topic {topic} (id " in run.out
    assert run.err.startswith("barnabas topics describe: missing: ")


def test_records_are_deleted_before_an_offset(barnabas: Any, topic: str, produce: Any) -> None:
    produce(topic, "a\nb\nc\n", "--partition", "1")
    run = barnabas("topics", "delete-records", topic, "--before", "2", "--partition", "1")
    assert run == (0, "partition  earliest\n        1         2\n", "")
    kept = barnabas("consume", topic, "--exit-at-end")
    assert kept.out == "c\n"


def test_records_are_deleted_before_a_time(barnabas: Any, topic: str, produce: Any) -> None:
    produce(topic, "old\n", "--partition", "1", "--timestamp", "2h")
    produce(topic, "new\n", "--partition", "1")
    run = barnabas(
        "topics", "delete-records", topic, "--before", "1h", "--partition", "1", "--json"
    )
    assert json.loads(run.out) == [{"partition": 1, "earliest_offset": 1}]
    everything = barnabas("topics", "delete-records", topic, "--before", "end", "--json")
    assert {
        entry["partition"]: entry["earliest_offset"] for entry in json.loads(everything.out)
    } == {
        0: 0,
        1: 2,
        2: 0,
    }


def test_records_that_are_not_there_cannot_be_deleted(barnabas: Any, topic: str) -> None:
    run = barnabas("topics", "delete-records", topic, "--before", "9", "--partition", "0")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"barnabas topics delete-records: {topic}-0: ")
    assert barnabas("topics", "delete-records", topic, "--before", "beginning").code == 1
    wrong = barnabas("topics", "delete-records", topic, "--before", "end", "--partition", "7")
    assert f"topic '{topic}' has partitions 0-2, not 7" in wrong.err


ID = bytes(range(16))


def described_cluster(port: list[int]) -> Script:
    """Topic `t` with two partitions: one led by broker 1, one without a leader."""

    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port[0])],
            topics=[
                MetadataResponseTopic(
                    name="t",
                    topic_id=ID,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=leader,
                            leader_epoch=4,
                            replica_nodes=[1, 2],
                            isr_nodes=[1] if leader == 1 else [],
                        )
                        for index, leader in ((0, 1), (1, -1))
                    ],
                )
            ],
        )

    def offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        offset = {-2: 10, -1: 1500}[request.topics[0].partitions[0].timestamp]
        answer = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[answer])])

    def sizes(request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResponse:
        replica = DescribeLogDirsPartition(partition_index=0, partition_size=5_000_000)
        directory = DescribeLogDirsResult(
            log_dir="/d", topics=[DescribeLogDirsTopic(name="t", partitions=[replica])]
        )
        return DescribeLogDirsResponse(results=[directory])

    return {MetadataRequest: metadata, ListOffsetsRequest: offsets, DescribeLogDirsRequest: sizes}


def describe(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    port = [0]

    async def conversation() -> int:
        async with ScriptedBroker(described_cluster(port)) as broker:
            port[0] = broker.address.port
            bootstrap = ["--bootstrap", str(broker.address)]
            return await asyncio.to_thread(main, ["topics", "describe", "t", *words, *bootstrap])

    assert asyncio.run(conversation()) == 0
    return capsys.readouterr().out


def test_what_describe_prints_for_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert describe(capsys) == (
        "topic t (id AAECAwQFBgcICQoLDA0ODw)\n"
        "partition  leader  epoch  replicas  in sync  offline  earliest  latest  size\n"
        "        0       1      4  1,2       1              -        10    1500  4.8 MiB\n"
        "        1       -      4  1,2                      -         -       -  -\n"
    )


def test_what_describe_prints_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(describe(capsys, "--json")) == [
        {
            "name": "t",
            "id": "AAECAwQFBgcICQoLDA0ODw",
            "internal": False,
            "replication_factor": 2,
            "partitions": [
                {
                    "partition": 0,
                    "leader": 1,
                    "leader_epoch": 4,
                    "replicas": [1, 2],
                    "isr": [1],
                    "offline": [],
                    "earliest_offset": 10,
                    "latest_offset": 1500,
                    "size_bytes": 5_000_000,
                },
                {
                    "partition": 1,
                    "leader": None,
                    "leader_epoch": 4,
                    "replicas": [1, 2],
                    "isr": [],
                    "offline": [],
                    "earliest_offset": None,
                    "latest_offset": None,
                    "size_bytes": None,
                },
            ],
        }
    ]


def test_fork(barnabas: Any, topic: str, produce: Any) -> None:
    assert produce(topic, "one\ntwo\n", "--partition", "0").code == 0
    assert barnabas("topics", "fork", topic, f"{topic}-fork") == (
        0,
        f"created topic {topic}-fork, a fork of {topic}\n",
        "",
    )
    read = ("consume", f"{topic}-fork", "--from", "beginning", "--exit-at-end")
    assert barnabas(*read).out.splitlines() == ["one", "two"]
    cut = barnabas("topics", "fork", topic, f"{topic}-cut", "--offsets", "0:0", "--json")
    document = json.loads(cut.out)
    assert (document["source"], document["partitions"]) == (topic, 3)
    assert barnabas("consume", f"{topic}-cut", "--from", "beginning", "--exit-at-end").out == ""
    assert barnabas("topics", "fork", topic, f"{topic}-old", "--at", "1d").code == 0
    assert barnabas("consume", f"{topic}-old", "--from", "beginning", "--exit-at-end").out == ""
    again = barnabas("topics", "fork", topic, f"{topic}-fork")
    assert again.code == 1
    assert again.err.endswith("(TOPIC_ALREADY_EXISTS)\n")
    assert barnabas("topics", "fork", topic, "x", "--offsets", "zero").code == 2
    assert barnabas("topics", "fork", topic, "x", "--at", "later").code == 2

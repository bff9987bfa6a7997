"""The properties file of the second MirrorMaker."""

from __future__ import annotations

import pytest

from barnabas.cli.kafka.mirror_flows import FlowsFile
from barnabas.model.errors import ConfigError

PAIR = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
}


def test_kafkas_defaults() -> None:
    [flow] = FlowsFile(PAIR).flows()
    topics = flow.mirror.topics
    assert str(flow) == "A->B"
    assert flow.mirror.source.given == {"bootstrap.servers": "a:9092"}
    assert flow.mirror.target.given == {"bootstrap.servers": "b:9092"}
    assert (flow.mirror.replication_factor, flow.mirror.refresh_interval_ms) == (2, 600_000)
    assert topics.target_topic("orders") == "A.orders"
    names = ("orders", "heartbeats.internal", "a.replica", "__consumer_offsets", "B.orders")
    assert [topics.replicates(name) for name in names] == [True, False, False, False, False]
    assert flow.groups == (".*",)
    assert flow.groups_excluded == ("console-consumer-.*", "connect-.*", "__.*")
    assert flow.sync_groups_s is None


def test_a_flow_has_options_of_its_own() -> None:
    file = FlowsFile(
        {
            **PAIR,
            "B->A.enabled": "true",
            "topics": "all-.*",
            "A->B.topics": "foo, bar-.*",
            "A->B.topics.exclude": "bar-private",
            "A->B.replication.policy.class": "org.example.IdentityReplicationPolicy",
            "A->B.sync.group.offsets.enabled": "true",
            "A->B.groups": "shop-.*",
            "A->B.groups.blacklist": "shop-test",
            "B->A.replication.policy.separator": "_",
            "sync.group.offsets.interval.seconds": "5",
            "replication.factor": "3",
        }
    )
    there, back = file.flows()
    names = ("foo", "bar-1", "bar-private", "all-1")
    assert [there.mirror.topics.replicates(name) for name in names] == [True, True, False, False]
    assert there.mirror.topics.target_topic("foo") == "foo"
    assert (there.groups, there.groups_excluded) == (("shop-.*",), ("shop-test",))
    assert (there.sync_groups_s, back.sync_groups_s) == (5, None)
    assert back.mirror.topics.target_topic("all-1") == "B_all-1"
    assert back.mirror.topics.replicates("all-1")
    assert back.mirror.replication_factor == 3
    assert [str(flow) for flow in file.flows(["A"])] == ["B->A"]


def test_options_of_clients() -> None:
    [flow] = FlowsFile(
        {
            **PAIR,
            "security.protocol": "SASL_SSL",
            "A.security.protocol": "PLAINTEXT",
            "A.consumer.fetch.min.bytes": "5",
            "B.producer.linger.ms": "7",
            "A.offset.storage.topic": "connect-offsets",
        }
    ).flows()
    source, target = flow.mirror.source.given, flow.mirror.target.given
    assert source["security.protocol"] == "PLAINTEXT"
    assert source["fetch.min.bytes"] == "5"
    assert target["security.protocol"] == "SASL_SSL"
    assert target["linger.ms"] == "7"
    assert not {"linger.ms", "offset.storage.topic", "topics"} & source.keys()


@pytest.mark.parametrize(
    ("properties", "targets", "text"),
    [
        ({}, None, "clusters is not set"),
        ({"clusters": "A"}, None, "A.bootstrap.servers is not set"),
        ({**PAIR, "A->B.enabled": "false"}, None, "no flow is enabled"),
        (PAIR, ["A"], "no flow is enabled"),
        (PAIR, ["C"], "--clusters C: not one of clusters = A, B"),
        ({**PAIR, "replication.factor": "two"}, None, "replication.factor=two"),
    ],
)
def test_wrong_files(properties: dict[str, str], targets: list[str] | None, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        FlowsFile(properties).flows(targets)


def test_options_without_effect_are_named() -> None:
    file = FlowsFile(
        {**PAIR, "A->B.emit.heartbeats.enabled": "false", "A->B.tasks.max": "4", "tasks.max": "2"}
    )
    assert file.without_effect() == ["A->B.tasks.max", "tasks.max"]

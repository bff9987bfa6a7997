"""`barnabas top` against real brokers: what it says agrees with what was done."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.unit.cli.conftest import Run

from barnabas import KafkaConsumer, TopicPartition
from barnabas.testing import Cluster

Barnabas = Callable[..., Run]


def test_lag_of_a_group(barnabas: Barnabas, produce: Barnabas, barnabas_bootstrap: str) -> None:
    topic = "top-lag"
    assert barnabas("topics", "create", topic, "--partitions", "1").code == 0
    assert produce(topic, "a\nb\nc\nd\n").code == 0
    with KafkaConsumer(bootstrap_servers=barnabas_bootstrap, group_id="top-group") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 1)
        consumer.commit()
    ran = barnabas("top", "--once", "--interval", "0.05", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    (group,) = [row for row in document["groups"] if row["name"] == "top-group"]
    assert (group["lag"], group["state"]) == (3, "Empty")
    assert group["lag_s"] > 0
    (row,) = [row for row in document["topics"] if row["name"] == topic]
    assert (row["partitions"], row["records_in"]) == (1, 0)
    (broker,) = document["brokers"]
    assert broker["is_controller"]
    assert broker["round_trip_ms"] > 0
    assert document["requests"] is None
    assert document["bytes_are_growth"]
    assert document["missing"] == []
    assert not any(row["name"].startswith("__") for row in document["topics"])
    plain = barnabas("top", "--once", "--interval", "0.05", "--sort", "name", "--internal")
    assert "top-group" in plain.out
    assert "__consumer_offsets" in plain.out


def test_metrics_of_three_brokers(trio: Barnabas, three_brokers: Cluster, tmp_path: object) -> None:
    url = "http://127.0.0.1:1/metrics"
    ran = trio("top", "--once", "--interval", "0.05", "--json", "--metrics", f"0={url}")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert len(document["brokers"]) == 3
    assert [row["is_controller"] for row in document["brokers"]].count(True) == 1
    (missing,) = document["missing"]
    assert missing.startswith(f"metrics at {url}: ")


def test_latencies_come_from_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    from barnabas.cli.main import main

    with Cluster(metrics=True) as cluster:
        words = ["top", "--once", "--interval", "1.5", "--json", "--bootstrap", cluster.bootstrap]
        assert main([*words, "--metrics", f"0={cluster.metrics_url()}"]) == 0
        document = json.loads(capsys.readouterr().out)
    requests = {row["api"]: row for row in document["requests"]}
    assert requests["Metadata"]["per_s"] > 0
    assert requests["Metadata"]["p99_ms"] > 0
    (broker,) = document["brokers"]
    assert broker["busy"] is not None
    assert broker["connections"] >= 1
    assert not document["bytes_are_growth"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sort", "size"), "invalid choice: 'size'"),
        (("--metrics", "a:9404"), "'a:9404' is not URL or BROKER=URL"),
        (("--interval", "0"), "'0' is not a positive number of seconds"),
    ],
)
def test_what_cannot_be_shown(barnabas: Barnabas, words: tuple[str, ...], said: str) -> None:
    ran = barnabas("top", *words)
    assert ran.code == 2
    assert said in ran.err

"""Each worker's options, from those that are given once."""

from __future__ import annotations

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.model.errors import ConfigError
from barnabas.workers.plan import WorkerPlan


def plan(count: int = 3, /, **values: str) -> WorkerPlan:
    given = {"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/data"}
    given |= {name.replace("_", "."): value for name, value in values.items()}
    return WorkerPlan({**given, "barnabas.workers": str(count)}, "machine-7")


def test_ids_ports_and_directories_are_consecutive() -> None:
    workers = plan(listeners="IN://:9092,OUT://[::1]:9192", log_dirs="/a,/b/", **{
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "advertised.listeners": "IN://host:9092,OUT://host:19092",
    })  # fmt: skip
    workers.check()
    assert list(workers.numbers) == [1, 2, 3]
    third = BrokerOptions.parse(workers.values_of(3))
    assert third.broker_id == 3
    assert [str(each) for each in third.endpoints.bind] == ["IN://:9094", "OUT://[::1]:9194"]
    published = [str(each) for each in third.endpoints.advertised]
    assert published == ["IN://host:9094", "OUT://host:19094"]
    assert third.log_directories == ("/a/worker-3", "/b/worker-3")
    assert third.broker_rack == "machine-7"
    assert third.barnabas_workers == 3
    assert third.leader_imbalance_check_interval_seconds == 30
    own = plan(**{"leader.imbalance.check.interval.seconds": "7"})
    assert own.values_of(1)["leader.imbalance.check.interval.seconds"] == "7"


def test_the_first_worker_has_what_was_given() -> None:
    workers = plan(2, broker_id="101", broker_rack="r")
    first = BrokerOptions.parse(workers.values_of(1))
    assert first.broker_id == 101
    assert str(first.endpoints.bind[0]) == "PLAINTEXT://127.0.0.1:9092"
    assert first.broker_rack == "r"
    assert workers.broker_id(2) == 102


def test_any_port_is_the_same_port_after_a_restart() -> None:
    workers = plan(listeners="PLAINTEXT://127.0.0.1:0")
    workers.check()
    assert workers.values_of(2)["listeners"] == "PLAINTEXT://127.0.0.1:0"
    again = workers.values_of(2, {"PLAINTEXT": 40123})
    assert again["listeners"] == "PLAINTEXT://127.0.0.1:40123"


def test_log_files_metrics_and_the_console() -> None:
    workers = plan(
        2,
        **{
            "barnabas.log.dir": "/var/log",
            "barnabas.metrics.listener": "0.0.0.0:9404",
            "barnabas.console.listener": "127.0.0.1:8080",
            "log.dir": "/ignored",
        },
    )
    first, second = workers.values_of(1), workers.values_of(2)
    assert second["barnabas.log.dir"] == "/var/log/worker-2"
    assert first["barnabas.metrics.listener"] == "127.0.0.1:0"
    assert first["barnabas.console.listener"] == "127.0.0.1:8080"
    assert "barnabas.console.listener" not in second
    assert "log.dir" not in second


@pytest.mark.parametrize(
    ("count", "values", "message"),
    [
        (
            2,
            {"listeners": "PLAINTEXT://:9092,SSL://:9093"},
            "worker 2 would listen on PLAINTEXT://:9093, and worker 1 on SSL://:9093: leave 2",
        ),
        (2, {"zookeeper_connect": "zk:2181"}, "--id must say the first one"),
        (0, {}, r"barnabas\.workers=0: must be 1 to 256"),
        (1, {"listeners": "nonsense"}, "must be NAME://host:port"),
        (2, {"broker_id": "1000"}, "1001"),
        (2, {"listeners": "PLAINTEXT://:65535"}, "the port must be 0 to 65535"),
    ],
)
def test_what_cannot_be_is_named(count: int, values: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(count, **values).check()


def test_where_the_tree_is() -> None:
    assert plan().has_tree
    joined = plan(zookeeper_connect="zk:2181/kafka", broker_id="5")
    joined.check()
    assert not joined.has_tree
    assert joined.values_of(2)["zookeeper.connect"] == "zk:2181/kafka"

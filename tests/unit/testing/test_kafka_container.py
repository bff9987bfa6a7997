"""The interface of testcontainers, on a broker in this process."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.testing import KafkaContainer
from barnabas.testing.cluster import RUNNING
from barnabas.testing.kafka_container import options_of_environment
from barnabas.testing.zookeeper import free_port

METHODS = {
    # Of testcontainers 4.15: KafkaContainer and DockerContainer, without what begins with "_".
    *("configure", "create_file", "tc_start"),
    *("copy_from_container", "copy_into_container", "exec", "get_bootstrap_server"),
    *("get_container_host_ip", "get_container_id", "get_container_info", "get_docker_client"),
    *("get_exposed_port", "get_logs", "get_wrapped_container", "maybe_emulate_amd64", "reload"),
    *("start", "status", "stop", "wait", "waiting_for", "with_bind_ports", "with_cluster_id"),
    *("with_command", "with_copy_into_container", "with_env", "with_env_file", "with_envs"),
    *("with_exposed_ports", "with_kraft", "with_kwargs", "with_name", "with_network"),
    *("with_network_aliases", "with_tmpfs_mount", "with_volume_mapping"),
}
INSIDE_OF_THE_CONTAINER = {"configure", "create_file", "tc_start"}


def test_it_has_every_method() -> None:
    assert {
        name for name in METHODS if not hasattr(KafkaContainer, name)
    } == INSIDE_OF_THE_CONTAINER


def test_a_suite_works_as_with_a_container() -> None:
    container = KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft().with_name("kafka")
    container.with_env("KAFKA_NUM_PARTITIONS", "3").with_exposed_ports(9093)
    assert container.status == "not_started"
    with container as kafka:
        address = kafka.get_bootstrap_server()
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9093)
        assert address == f"{host}:{port}"
        assert kafka.status == "running"
        assert kafka.cluster in RUNNING
        with KafkaProducer(bootstrap_servers=address) as producer:
            assert producer.send("orders", b"42").get(timeout=60).offset == 0
            assert len(producer.partitions_for("orders")) == 3
        first, data = kafka.get_container_id(), kafka.cluster.data_dir
    assert container.status == "not_started"
    assert not data.exists()
    container.stop()  # again, to no effect
    container.start()
    try:
        assert container.get_container_id() != first
        with KafkaAdminClient(bootstrap_servers=container.get_bootstrap_server()) as admin:
            assert admin.list_topics() == []  # a new one
        with pytest.raises(InvalidValueError, match="already started"):
            container.start()
    finally:
        container.stop()
    assert not [each for each in RUNNING if each.data_dir == data]


def test_tools_run_as_inside_of_the_container() -> None:
    with KafkaContainer() as kafka:
        create = "kafka-topics --bootstrap-server localhost:9092 --create --topic t --partitions 2"
        assert kafka.exec(create) == (0, b"Created topic t.\n")
        words = ["/usr/bin/kafka-topics.sh", "--bootstrap-server", "127.0.0.1:9093", "--list"]
        assert kafka.exec(words).output == b"t\n"
        code, output = kafka.exec(create)
        assert code == 1
        assert b"already exists" in output
        with pytest.raises(InvalidValueError, match="exec ls /: not possible without a container"):
            kafka.exec("ls /")


def test_it_listens_where_it_was_bound() -> None:
    port = free_port()
    with KafkaContainer().with_bind_ports("9093/tcp", f"{port}/tcp") as kafka:
        assert kafka.get_exposed_port(9093) == port
        with socket.create_connection((kafka.get_container_host_ip(), port)):
            pass
        with pytest.raises(InvalidValueError, match="port 1234: the broker has one port"):
            kafka.get_exposed_port(1234)


def test_options_are_read_from_the_environment(tmp_path: Path) -> None:
    assert options_of_environment(
        {
            "KAFKA_LOG_RETENTION_MS": "1",
            "KAFKA_A__DASH_A___B": "2",
            "KAFKA_ADVERTISED_LISTENERS": "x",
            "KAFKA_ZOOKEEPER_CONNECT": "x",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "x",
            "KAFKA_HEAP_OPTS": "-Xmx1G",
            "KAFKA_JMX_PORT": "1",
            "KAFKA_LOG_DIRS": "/data",
            "CLUSTER_ID": "x",
        }
    ) == {"log.retention.ms": "1", "a-dash.a_b": "2"}
    file = tmp_path / "kafka.env"
    file.write_text("# comment\n\nexport KAFKA_NUM_PARTITIONS='7'\nOTHER=1\n")
    container = KafkaContainer(env={"KAFKA_A": "1"}).with_env_file(file).with_envs(KAFKA_B="2")
    options = container._options()
    assert {name: options[name] for name in ("num.partitions", "a", "b", "broker.id")} == {
        "num.partitions": "7",
        "a": "1",
        "b": "2",
        "broker.id": "1",
    }
    file.write_text("nonsense\n")
    with pytest.raises(InvalidValueError, match="'nonsense' is not of the form NAME=VALUE"):
        container.with_env_file(file)


def test_what_is_not_possible_is_said() -> None:
    container = KafkaContainer()
    for call in (
        lambda: container.with_network("net"),
        lambda: container.with_volume_mapping("/a", "/b"),
        lambda: container.get_wrapped_container(),
        lambda: KafkaContainer(network="net"),
    ):
        with pytest.raises(InvalidValueError, match="not possible without a container; "):
            call()
    for call in (container.get_bootstrap_server, container.get_container_id):
        with pytest.raises(InvalidValueError, match="not started"):
            call()
    with pytest.raises(InvalidValueError, match=r'Cluster\(security="sasl_ssl"\)'):
        KafkaContainer(security_protocol="SASL_SSL")
    with (
        pytest.raises(ConfigError, match=r"num\.partitions"),
        container.with_env("KAFKA_NUM_PARTITIONS", "many"),
    ):
        pass
    assert container.status == "not_started"

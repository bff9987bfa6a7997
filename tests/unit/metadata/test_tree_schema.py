"""The tree's paths and bytes: exactly those that ZooKeeper tools know."""

from __future__ import annotations

import pytest

from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.ids import ZERO_UUID, uuid_from_text

TOPIC_ID = uuid_from_text("AAAAAAAAAAAAAAAAAAAAKg")


def test_topics() -> None:
    """Version 3 with an id, partitions in order, and empty lists of moves."""
    assignment = nodes.TopicAssignment(TOPIC_ID, {1: [2], 0: [1, 2, 3]}, adding={0: [3]})
    data = assignment.encode()
    assert data == (
        b'{"partitions":{"0":[1,2,3],"1":[2]},"topic_id":"AAAAAAAAAAAAAAAAAAAAKg",'
        b'"adding_replicas":{"0":[3]},"removing_replicas":{},"version":3}'
    )
    again = nodes.TopicAssignment.decode("/t", data)
    assert (again.topic_id, again.replicas) == (TOPIC_ID, {0: (1, 2, 3), 1: (2,)})
    assert (again.adding, again.removing) == ({0: (3,)}, {})


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":1,"partitions":{"0":[1]}}',
        b'{"version":2,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}',
        b'{"version":3,"partitions":{"0":[1]},"something":["new"]}',
    ],
)
def test_older_topics(data: bytes) -> None:
    """Before version 3 there is no id; fields we do not know are no mistake."""
    topic = nodes.TopicAssignment.decode("/t", data)
    assert (topic.topic_id, topic.replicas) == (ZERO_UUID, {0: (1,)})


def test_partition_states() -> None:
    """The order of fields is Kafka's; recovery is told only while it lasts."""
    state = nodes.PartitionState(1, 4, [1, 2], 7)
    data = b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert state.encode() == data
    assert nodes.PartitionState.decode("/s", data) == nodes.PartitionState(1, 4, (1, 2), 7)
    recovering = nodes.PartitionState(1, 4, (1,), 7, recovering=True)
    assert recovering.encode().endswith(b',"leader_recovery_state":1}')
    assert nodes.PartitionState.decode("/s", recovering.encode()) == recovering


def test_registrations() -> None:
    """Version 5; host and port are those of the first plain listener."""
    registration = nodes.BrokerRegistration(
        [("PLAINTEXT", "h", 9092), ("SSL", "h", 9093)],
        {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"},
        "r1",
        1_700_000_000_000,
    )
    assert registration.encode() == (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","SSL":"SSL"},'
        b'"endpoints":["PLAINTEXT://h:9092","SSL://h:9093"],"rack":"r1","jmx_port":-1,'
        b'"port":9092,"host":"h","version":5,"timestamp":"1700000000000"}'
    )
    bare = nodes.BrokerRegistration([("SSL", "::1", 9093)], {"SSL": "SSL"}, None, 0)
    assert bare.encode() == (
        b'{"features":{},"listener_security_protocol_map":{"SSL":"SSL"},'
        b'"endpoints":["SSL://[::1]:9093"],"jmx_port":-1,"port":-1,"host":null,"version":5,'
        b'"timestamp":"0"}'
    )


def test_a_registration_tells_of_the_control_plane_if_there_is_one() -> None:
    """By a field of our own, which Apache Kafka passes over."""
    both = [("IN", "h", 9092), ("CONTROL", "h", 9093)]
    protocols = {"IN": "PLAINTEXT", "CONTROL": "PLAINTEXT"}
    apart = nodes.BrokerRegistration(both, protocols, None, 0, "CONTROL")
    assert apart.encode().endswith(b',"timestamp":"0","control_plane_listener":"CONTROL"}')
    assert nodes.BrokerRegistration.decode("/b", apart.encode()) == apart
    unlisted = apart.encode().replace(b'"CONTROL"}', b'"OTHER"}')
    assert nodes.BrokerRegistration.decode("/b", unlisted).control_plane is None


def test_small_nodes() -> None:
    """The cluster's id, the controller, configs, notices and producer ids."""
    cluster_id = b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAKg"}'
    assert nodes.encode_cluster_id("AAAAAAAAAAAAAAAAAAAAKg") == cluster_id
    assert nodes.decode_cluster_id(cluster_id) == "AAAAAAAAAAAAAAAAAAAAKg"
    assert nodes.encode_controller(1, 1700) == (
        b'{"version":2,"brokerid":1,"timestamp":"1700","kraftControllerEpoch":-1}'
    )
    config = b'{"version":1,"config":{"k":"v"}}'
    assert nodes.encode_config({"k": "v"}) == config
    assert nodes.decode_config("/c", config) == {"k": "v"}
    assert nodes.decode_config("/c", b"") == {}
    notice = b'{"version":2,"entity_path":"topics/t"}'
    assert nodes.encode_config_change("topics/t") == notice
    block = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert nodes.encode_producer_ids(1, 0, 999) == block
    assert nodes.decode_producer_ids(block) == 999
    assert nodes.decode_producer_ids(b"") == -1


def test_paths() -> None:
    """Topics stand in paths as they are; entity names are URL-encoded, the default one is not."""
    assert nodes.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert nodes.config_path("brokers", nodes.DEFAULT_ENTITY) == "/config/brokers/<default>"
    for name in ("plain-1._~", "a b", "CN=x,O=y", "a/b", "ü*+", "100%"):
        path = nodes.config_path("users", name)
        assert "/" not in nodes.sanitized(name)
        assert nodes.desanitized(path.rpartition("/")[2]) == name
    assert nodes.sanitized("User:a b*~+é/") == "User%3Aa%20b%2A%7E%2B%C3%A9%2F"
    assert nodes.consumer_offset_path("a b", "t", 3) == "/consumers/a b/offsets/t/3"
    with pytest.raises(InvalidValueError, match=r"group 'a/b': .* slash"):
        nodes.consumer_offset_path("a/b", "t", 3)


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}", b'{"partitions":7}', b'{"isr":1}'])
def test_corrupt_nodes(data: bytes) -> None:
    """What cannot be read names its node."""
    for decode in (nodes.TopicAssignment.decode, nodes.PartitionState.decode):
        with pytest.raises(CorruptFileError, match="/the/node"):
            decode("/the/node", data)
    with pytest.raises(CorruptFileError):
        nodes.decode_cluster_id(data)
    if data:
        with pytest.raises(CorruptFileError):
            nodes.decode_producer_ids(data)
    if data in (b"x", b"[]"):
        with pytest.raises(CorruptFileError):
            nodes.decode_config("/c", data)


@pytest.mark.parametrize(
    ("data", "endpoints", "protocols", "rack"),
    [
        (
            b'{"version":1,"host":"h","port":9092}',
            [("PLAINTEXT", "h", 9092)],
            {"PLAINTEXT": "PLAINTEXT"},
            None,
        ),
        (
            b'{"version":2,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092",'
            b'"SSL://h:9093"],"jmx_port":1,"timestamp":"5"}',
            [("PLAINTEXT", "h", 9092), ("SSL", "h", 9093)],
            {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"},
            None,
        ),
        (
            b'{"version":3,"host":null,"port":-1,"endpoints":["SSL://[::1]:9093"],"rack":"r"}',
            [("SSL", "::1", 9093)],
            {"SSL": "SSL"},
            "r",
        ),
        (
            b'{"version":5,"endpoints":["CLIENT://h:9092"],"timestamp":"7","features":{"f":1},'
            b'"listener_security_protocol_map":{"CLIENT":"SASL_SSL"},"new":[1]}',
            [("CLIENT", "h", 9092)],
            {"CLIENT": "SASL_SSL"},
            None,
        ),
    ],
)
def test_registrations_of_every_version(
    data: bytes,
    endpoints: list[tuple[str, str, int]],
    protocols: dict[str, str],
    rack: str | None,
) -> None:
    node = nodes.BrokerRegistration.decode("/b", data)
    assert (list(node.endpoints), node.protocols, node.rack) == (endpoints, protocols, rack)
    again = nodes.BrokerRegistration.decode("/b", node.encode())
    assert (list(again.endpoints), again.protocols, again.rack) == (endpoints, protocols, rack)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'{"version":1}',
        b'{"version":1,"host":"h","port":"none"}',
        b'{"endpoints":["h:9092"]}',
        b'{"endpoints":["PLAINTEXT://h"]}',
        b'{"endpoints":["PLAINTEXT://h:port"]}',
        b'{"endpoints":[7]}',
        b'{"endpoints":["A://h:1"],"listener_security_protocol_map":["A"]}',
        b'{"endpoints":["A://h:1"],"timestamp":"late"}',
    ],
)
def test_tampered_registrations(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="/brokers/ids/3"):
        nodes.BrokerRegistration.decode("/brokers/ids/3", data)


def test_tampered_small_nodes() -> None:
    """Each reader names the node that it cannot read."""
    for data in (b"", b"{}", b'{"brokerid":"x"}', b'{"brokerid":null}', b"7"):
        with pytest.raises(CorruptFileError, match="/controller"):
            nodes.decode_controller(data)
    for data in (b"", b"{}", b'{"broker":"x"}', b"[1]"):
        with pytest.raises(CorruptFileError, match="/event"):
            nodes.decode_log_dir_event("/event", data)
    for data in (b"", b"{}", b'{"entity_path":7}', b'{"entity_path":"topics"}'):
        with pytest.raises(CorruptFileError, match="/change"):
            nodes.decode_config_change("/change", data)
    for data in (b"", b"{}", b'{"partitions":[{}]}', b'{"partitions":[{"topic":"t"}]}', b"[]"):
        with pytest.raises(CorruptFileError, match="/moves"):
            nodes.decode_partitions("/moves", data)
    for data in (b'{"config":[]}', b'{"config":"x"}'):
        with pytest.raises(CorruptFileError, match="/config"):
            nodes.decode_config("/config", data)


def test_partition_lists() -> None:
    """The oldest tools' requests: replicas for a move, none for an election."""
    moves = [("t", 0, (1, 2)), ("u", 3, (4,))]
    data = nodes.encode_partitions(moves)
    assert data == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]},'
        b'{"topic":"u","partition":3,"replicas":[4]}]}'
    )
    assert nodes.decode_partitions("/p", data) == moves
    election = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    assert nodes.decode_partitions("/p", election) == [("t", 0, ())]
    assert nodes.decode_controller(nodes.encode_controller(4, 0)) == 4
    assert nodes.decode_log_dir_event("/e", nodes.encode_log_dir_event(4)) == 4

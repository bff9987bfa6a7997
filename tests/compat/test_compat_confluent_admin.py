"""`AdminClient` of confluent-kafka and of barnabas.compat.confluent_kafka: the same outcomes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from tests.compat.confluent import Confluent
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat


@pytest.fixture
def admin(confluent: Confluent, quick_bootstrap: str) -> Any:
    return confluent.admin.AdminClient({"bootstrap.servers": quick_bootstrap})


@pytest.fixture
def topic(confluent: Confluent, quick_bootstrap: str, name: str) -> str:
    return confluent.topic(quick_bootstrap, name)


def failure_of(confluent: Confluent, future: Future[Any]) -> str:
    """Return the name of the error that a future raises."""
    with pytest.raises(confluent.kafka.KafkaException) as failure:
        future.result(30)
    error = failure.value.args[0]
    assert isinstance(error, confluent.kafka.KafkaError)
    return str(error.name())


def test_topics(confluent: Confluent, admin: Any, new_name: Callable[[], str]) -> None:
    NewTopic, NewPartitions = confluent.admin.NewTopic, confluent.admin.NewPartitions
    one, two, three = (new_name() for _ in range(3))
    (broker,) = admin.list_topics(timeout=30).brokers
    wanted = [
        NewTopic(one, 2, 1, config={"retention.ms": "60000"}),
        NewTopic(two, 3, replica_assignment=[[broker], [broker], [broker]]),
        NewTopic(three, num_partitions=-1, replication_factor=-1),
    ]
    futures = admin.create_topics(wanted)
    assert list(futures) == [one, two, three]
    assert [future.result(30) for future in futures.values()] == [None] * 3
    again = admin.create_topics([NewTopic(one, 1, 1)])[one]
    assert failure_of(confluent, again) == "TOPIC_ALREADY_EXISTS"
    bad = NewTopic(f"{one}-bad", 1, 99)
    assert failure_of(confluent, admin.create_topics([bad])[bad.topic]) == (
        "INVALID_REPLICATION_FACTOR"
    )
    dry = new_name()
    assert admin.create_topics([NewTopic(dry, 1, 1)], validate_only=True)[dry].result(30) is None
    listed = admin.list_topics(timeout=30).topics
    assert {one, two, three} <= set(listed)
    assert dry not in listed
    assert len(listed[two].partitions) == 3
    assert admin.create_partitions([NewPartitions(one, 4)])[one].result(30) is None
    fewer = admin.create_partitions([NewPartitions(one, 1)])[one]
    assert failure_of(confluent, fewer) == "INVALID_PARTITIONS"
    described = admin.describe_topics(
        confluent.kafka.TopicCollection([one, dry]), include_authorized_operations=True
    )
    found = described[one].result(30)
    assert (found.name, found.is_internal, len(found.partitions)) == (one, False, 4)
    shown = [(each.id, each.leader.id, [node.id for node in each.isr]) for each in found.partitions]
    assert shown == [(number, broker, [broker]) for number in range(4)]
    assert len(str(found.topic_id)) == 22
    assert confluent.admin.AclOperation.READ in found.authorized_operations
    assert failure_of(confluent, described[dry]) == "UNKNOWN_TOPIC_OR_PART"
    assert admin.delete_topics([two], operation_timeout=30)[two].result(30) is None
    assert failure_of(confluent, admin.delete_topics([dry])[dry]) == "UNKNOWN_TOPIC_OR_PART"
    for _ in until_deadline("the topic to be gone"):
        if two not in admin.list_topics(timeout=30).topics:
            break


def test_the_cluster(confluent: Confluent, admin: Any, quick_bootstrap: str) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(30)
    view = admin.list_topics(timeout=30)
    assert found.cluster_id == view.cluster_id == admin.cluster_id(30)
    (node,) = found.nodes
    assert (node.id, f"{node.host}:{node.port}") == (view.controller_id, quick_bootstrap)
    assert (node.id_string, node.rack, found.controller.id) == (str(node.id), None, node.id)
    assert confluent.admin.AclOperation.CREATE in found.authorized_operations
    with confluent.admin.AdminClient({"bootstrap.servers": "127.0.0.1:1"}) as nowhere:
        failed = nowhere.describe_cluster(request_timeout=0.2)
        assert failure_of(confluent, failed) in ("_TIMED_OUT", "_TRANSPORT")
        assert nowhere.poll(0) >= 0


def test_options(confluent: Confluent, admin: Any, topic: str) -> None:
    ConfigResource, ConfigEntry = confluent.admin.ConfigResource, confluent.admin.ConfigEntry
    Operation, Source = confluent.admin.AlterConfigOpType, confluent.admin.ConfigSource
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    assert resource == ConfigResource("topic", topic)

    def described() -> Any:
        return admin.describe_configs([resource])[resource].result(30)

    entry = described()["cleanup.policy"]
    assert (entry.name, entry.value, entry.is_read_only) == ("cleanup.policy", "delete", False)
    assert (entry.is_sensitive, entry.is_synonym) == (False, False)
    assert Source(entry.source) is Source.DEFAULT_CONFIG
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=Operation.APPEND)
    )
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "1000000", incremental_operation=Operation.SET)
    )
    assert admin.incremental_alter_configs([resource])[resource].result(30) is None
    after = described()
    assert sorted(after["cleanup.policy"].value.split(",")) == ["compact", "delete"]
    assert after["retention.ms"].value == "1000000"
    assert Source(after["retention.ms"].source) is Source.DYNAMIC_TOPIC_CONFIG
    assert "log.retention.hours" in after["retention.ms"].synonyms
    undo = ConfigResource(ConfigResource.Type.TOPIC, topic)
    undo.add_incremental_config(
        ConfigEntry("retention.ms", None, incremental_operation=Operation.DELETE)
    )
    assert admin.incremental_alter_configs([undo])[undo].result(30) is None
    assert described()["retention.ms"].value == "604800000"
    wrong = ConfigResource(ConfigResource.Type.TOPIC, topic)
    wrong.add_incremental_config(
        ConfigEntry("retention.ms", "soon", incremental_operation=Operation.SET)
    )
    failed = admin.incremental_alter_configs([wrong], validate_only=True)[wrong]
    assert failure_of(confluent, failed) == "INVALID_CONFIG"
    replaced = ConfigResource("topic", topic, set_config={"max.message.bytes": "5000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        assert admin.alter_configs([replaced])[replaced].result(30) is None
    assert described()["max.message.bytes"].value == "5000"
    assert described()["cleanup.policy"].value == "delete"
    (broker,) = admin.list_topics(timeout=30).brokers
    of_broker = ConfigResource("broker", str(broker))
    options = admin.describe_configs([of_broker])[of_broker].result(30)
    assert options["log.dirs"].is_read_only


def test_offsets(
    confluent: Confluent, admin: Any, quick_bootstrap: str, new_name: Callable[[], str]
) -> None:
    topic = confluent.topic(quick_bootstrap, new_name(), 2)
    confluent.fill(quick_bootstrap, topic, 5, 1)
    TopicPartition, OffsetSpec = confluent.kafka.TopicPartition, confluent.admin.OffsetSpec
    where, other = TopicPartition(topic, 1), TopicPartition(topic, 0)

    def offset(spec: Any, at: Any = where) -> int:
        return int(admin.list_offsets({at: spec})[at].result(30).offset)

    start_ms = 1_700_000_000_000
    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 5
    assert offset(OffsetSpec.latest(), other) == 0
    assert offset(OffsetSpec.for_timestamp(start_ms + 1001)) == 2
    highest = admin.list_offsets({where: OffsetSpec.max_timestamp()})[where].result(30)
    assert (highest.offset, highest.timestamp) == (4, start_ms + 4000)
    deleted = admin.delete_records([TopicPartition(topic, 1, 3)])
    assert [each.result(30).low_watermark for each in deleted.values()] == [3]
    assert offset(OffsetSpec.earliest()) == 3
    too_far = TopicPartition(topic, 1, 99)
    assert failure_of(confluent, admin.delete_records([too_far])[too_far]) == "OFFSET_OUT_OF_RANGE"
    missing = TopicPartition(f"{topic}-not", 0)
    failed = admin.list_offsets({missing: OffsetSpec.latest()})[missing]
    assert failure_of(confluent, failed) in ("UNKNOWN_TOPIC_OR_PART", "_NOENT")


def test_groups(
    confluent: Confluent, admin: Any, quick_bootstrap: str, topic: str, name: str
) -> None:
    kafka, group = confluent.kafka, f"{name}.group"
    confluent.fill(quick_bootstrap, topic, 5)
    consumer = confluent.consumer(quick_bootstrap, group, client_id="reader")
    consumer.subscribe([topic])
    assert len(consumer.consume(5, 30)) == 5
    consumer.commit(asynchronous=False)
    listed = admin.list_consumer_groups(states={kafka.ConsumerGroupState.STABLE}).result(30)
    assert listed.errors == []
    (mine,) = (each for each in listed.valid if each.group_id == group)
    assert (mine.is_simple_consumer_group, mine.state, mine.type) == (
        False,
        kafka.ConsumerGroupState.STABLE,
        kafka.ConsumerGroupType.CLASSIC,
    )
    found = admin.describe_consumer_groups([group])[group].result(30)
    assert (found.group_id, found.state, found.partition_assignor) == (
        group,
        kafka.ConsumerGroupState.STABLE,
        "range",
    )
    (member,) = found.members
    assert (member.client_id, member.group_instance_id) == ("reader", None)
    assert member.member_id == consumer.memberid()
    assert [(each.topic, each.partition) for each in member.assignment.topic_partitions] == [
        (topic, 0)
    ]
    assert found.coordinator.id == admin.list_topics(timeout=30).controller_id
    refused = admin.delete_consumer_groups([group])[group]
    assert failure_of(confluent, refused) == "NON_EMPTY_GROUP"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        (old,) = admin.list_groups(group, 30)
    assert (old.id, old.state, old.protocol_type, old.protocol) == (
        group,
        "Stable",
        "consumer",
        "range",
    )
    assert [each.client_id for each in old.members] == ["reader"]
    assert b"".join(each.metadata for each in old.members)
    consumer.close()
    asked = kafka.ConsumerGroupTopicPartitions(group)
    offsets = admin.list_consumer_group_offsets([asked])[group].result(30)
    (found,) = offsets.topic_partitions
    assert (found.topic, found.partition, found.offset, found.error) == (topic, 0, 5, None)
    change = kafka.ConsumerGroupTopicPartitions(group, [kafka.TopicPartition(topic, 0, 2)])
    changed = admin.alter_consumer_group_offsets([change])[group].result(30)
    assert [each.offset for each in changed.topic_partitions] == [2]
    asked = kafka.ConsumerGroupTopicPartitions(group, [kafka.TopicPartition(topic, 0)])
    offsets = admin.list_consumer_group_offsets([asked])[group].result(30)
    assert [each.offset for each in offsets.topic_partitions] == [2]
    assert admin.delete_consumer_groups([group])[group].result(30) is None
    assert failure_of(confluent, admin.delete_consumer_groups([group])[group]) == (
        "GROUP_ID_NOT_FOUND"
    )


def test_elections(confluent: Confluent, admin: Any, topic: str) -> None:
    kafka = confluent.kafka
    where = kafka.TopicPartition(topic, 0)
    outcome = admin.elect_leaders(kafka.ElectionType.PREFERRED, [where]).result(30)
    assert [error.name() for error in outcome.values()] == ["ELECTION_NOT_NEEDED"]


def test_arguments_that_are_wrong(confluent: Confluent, admin: Any, topic: str) -> None:
    kafka, there = confluent.kafka, confluent.admin
    for call in (
        lambda: admin.describe_topics([topic]),
        lambda: admin.list_offsets([topic]),
        lambda: admin.list_consumer_groups(states=[kafka.ConsumerGroupState.STABLE]),
        lambda: admin.describe_consumer_groups("group"),
        lambda: admin.elect_leaders("preferred"),
        lambda: admin.create_topics([there.NewTopic(topic, 1, 1)], nonsense=True),
        lambda: there.NewTopic(5),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: there.ConfigResource("topic", None),
        lambda: admin.describe_consumer_groups([]),
        lambda: admin.alter_user_scram_credentials([]),
        lambda: admin.list_consumer_group_offsets([]),
        lambda: admin.create_topics([]),
        lambda: admin.delete_topics([]),
        lambda: admin.describe_configs([]),
        lambda: there.AclBinding("topic", None, "literal", "User:a", "*", "read", "allow"),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()

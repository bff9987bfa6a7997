"""The plain admin client: its names, its life, and what it says about bad input."""

from __future__ import annotations

import asyncio
import inspect
import threading
import warnings
from collections.abc import Iterator

import aiokafka.admin
import pytest

import barnabas.admin
from barnabas.admin import ConfigResource, NewPartitions, NewTopic
from barnabas.admin.cluster import describe_cluster
from barnabas.admin.core import within
from barnabas.aio.admin import AIOKafkaAdminClient
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.client.errors import IllegalStateError, KafkaTimeoutError, NoBrokersAvailable
from barnabas.errors import (
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.structs import OffsetAndMetadata, TopicPartition

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin

RELEASE_2 = {
    "create_topics": "new_topics timeout_ms validate_only",
    "delete_topics": "topics timeout_ms",
    "list_topics": "",
    "describe_topics": "topics",
    "describe_cluster": "",
    "describe_acls": "acl_filter",
    "create_acls": "acls",
    "delete_acls": "acl_filters",
    "describe_configs": "config_resources include_synonyms",
    "alter_configs": "config_resources",
    "create_partitions": "topic_partitions timeout_ms validate_only",
    "describe_consumer_groups": "group_ids group_coordinator_id include_authorized_operations",
    "list_consumer_groups": "broker_ids",
    "list_consumer_group_offsets": "group_id group_coordinator_id partitions",
    "delete_consumer_groups": "group_ids group_coordinator_id",
    "perform_leader_election": "election_type topic_partitions timeout_ms",
    "delete_records": "records_to_delete timeout_ms partition_leader_id",
}
"""The calls of kafka-python 2.x, with the arguments that they take first."""


@pytest.fixture
def admin(barnabas_bootstrap: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=[barnabas_bootstrap], client_id="tests") as client:
        yield client


def arguments(owner: type, name: str) -> list[str]:
    """Return the names of a method's arguments, without the object that has it."""
    return list(inspect.signature(getattr(owner, name)).parameters)[1:]


def calls(owner: type) -> list[str]:
    return [name for name, each in vars(owner).items() if callable(each) and name[0] != "_"]


def test_every_call_of_kafka_python_is_there_with_its_arguments() -> None:
    theirs = kafka.admin.KafkaAdminClient
    names = [name for parent in theirs.__mro__[:-1] for name in calls(parent)]
    assert len(names) > 40
    for name in names:
        known = arguments(theirs, name)
        assert arguments(KafkaAdminClient, name)[: len(known)] == known, name
    for name, known_2 in RELEASE_2.items():
        known = known_2.split()
        assert arguments(KafkaAdminClient, name)[: len(known)] == known, name


def test_every_call_of_aiokafka_is_there_with_its_arguments() -> None:
    theirs = aiokafka.admin.AIOKafkaAdminClient
    names = calls(theirs)
    assert len(names) > 13
    for name in names:
        known = arguments(theirs, name)
        assert arguments(AIOKafkaAdminClient, name)[: len(known)] == known, name


def test_the_values_of_both_libraries_can_be_imported() -> None:
    for name in {*kafka.admin.__all__, *aiokafka.admin.__all__, *barnabas.admin.__all__}:
        assert getattr(barnabas.admin, name).__name__ == name
    with pytest.raises(AttributeError, match="NoSuch"):
        barnabas.admin.NoSuch  # noqa: B018


def test_every_call_explains_itself() -> None:
    for owner in (KafkaAdminClient, AIOKafkaAdminClient):
        for name in calls(owner):
            assert inspect.getdoc(getattr(owner, name)), name


def test_answers_can_be_read_as_earlier_releases_gave_them(admin: KafkaAdminClient) -> None:
    made = admin.create_topics([NewTopic("release-2", 1, 1)])
    assert made.topic_errors == [("release-2", 0, None)]
    grown = admin.create_partitions({"release-2": NewPartitions(2)})
    assert grown.topic_errors == [("release-2", 0, None)]
    assert grown.results[0].name == "release-2"
    with pytest.raises(AttributeError, match="not 'topic'"):
        made.topic  # noqa: B018
    partition = TopicPartition("release-2", 1)
    admin.alter_group_offsets("release-2-group", {partition: OffsetAndMetadata(0, "m")})
    assert ("release-2-group", "") in admin.list_consumer_groups()
    found = admin.list_consumer_group_offsets("release-2-group")
    assert found == {partition: OffsetAndMetadata(0, "m", -1)}
    asked = admin.list_consumer_group_offsets("release-2-group", partitions=[partition])
    assert asked[partition].offset == 0
    [described, missing] = admin.describe_consumer_groups(["release-2-group", "missing"])
    assert (described.group, described.state, described.members) == ("release-2-group", "Empty", [])
    assert missing.state == "Dead"
    assert admin.delete_consumer_groups(["release-2-group"]) == [("release-2-group", NoError)]
    assert admin.delete_topics(["release-2"]).topic_error_codes == [("release-2", 0)]


def test_failures_among_successes_are_told(admin: KafkaAdminClient) -> None:
    admin.create_topics(["partial"])
    both = admin.create_topics(["partial", "partial-2"], raise_errors=False)
    assert [code for _, code in both.topic_error_codes] == [36, 0]
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics(["partial-3", "partial"])
    assert "partial-3" in admin.list_topics()
    missing = [TopicPartition("missing", index) for index in range(2)]
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        admin.delete_records(dict.fromkeys(missing, 1))
    assert len(caught.value.__notes__) == 1
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_configs([ConfigResource("topic", "missing")])


def test_calls_come_from_any_thread(admin: KafkaAdminClient) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(admin.describe_cluster()["cluster_id"]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(found)) == 1
    assert len(found) == 4
    typed = admin.run(lambda: describe_cluster(admin.client))
    assert typed.cluster_id == found[0]
    assert admin.metrics()["admin-client-metrics"]
    with pytest.raises(ValueError, match="raw=True"):
        admin.metrics(raw=True)


def test_a_closed_client_says_so(barnabas_bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=barnabas_bootstrap)
    admin.close()
    admin.close()
    with pytest.raises(IllegalStateError, match="closed"):
        admin.list_topics()


def test_no_broker_and_bad_options_are_told_at_once() -> None:
    before = set(threading.enumerate())
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
        KafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=500)
    with pytest.raises(ConfigError, match="request_timeout_ms"):
        KafkaAdminClient(request_timeout=5)
    with pytest.raises(ConfigError, match=r"bootstrap\.controllers"):
        KafkaAdminClient(bootstrap_controllers="127.0.0.1:1")
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(10)  # a name lookup may outlive its client by a moment
    assert not [thread for thread in left if thread.is_alive()]


def test_a_call_ends_when_its_time_is_up() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(KafkaTimeoutError, match=r"default\.api\.timeout\.ms=20"):
        asyncio.run(within(20, forever()))


def test_bad_input_is_named(admin: KafkaAdminClient) -> None:
    with pytest.raises(InvalidValueError, match="'ORDERS': must be a list"):
        admin.create_topics("ORDERS")
    with pytest.raises(InvalidValueError, match="field 'partitions': must be one of num_part"):
        admin.create_topics({"t": {"partitions": 3}})
    with pytest.raises(InvalidValueError, match="new_topics is empty"):
        admin.create_topics([])
    with pytest.raises(InvalidValueError, match="validate_only and wait_for_metadata"):
        admin.create_topics(["t"], validate_only=True, wait_for_metadata=True)
    with pytest.raises(
        InvalidValueError, match="'tpoic' is not a ConfigResourceType; did you mean T"
    ):
        ConfigResource("tpoic", "orders")
    with pytest.raises(InvalidValueError, match="must be a broker id"):
        admin.describe_configs([ConfigResource("broker", "first")])
    with pytest.raises(InvalidValueError, match="configs must be a dict"):
        admin.alter_configs([ConfigResource("topic", "t", ["retention.ms"])])
    with pytest.raises(InvalidValueError, match="did you mean STABLE"):
        admin.list_groups(states_filter=["stabel"])
    with pytest.raises(InvalidValueError, match="isolation_level 'dirty'"):
        admin.list_partition_offsets({}, isolation_level="dirty")
    with pytest.raises(InvalidValueError, match="16 bytes of an id"):
        admin.delete_topics([5])  # type: ignore[list-item]
    with pytest.raises(KafkaTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.wait_for_topics(["never"], timeout_ms=1)

"""`KafkaAdminClient` administers a real Apache Kafka: every call that it serves, of two releases.

The broker has two log directories, an authorizer (whose super user is everyone without a name), a
SASL listener (delegation tokens need one) and groups of both protocols.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tools.apache_kafka import Distribution
from tools.processes import free_port

from barnabas.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AlterConfigOp,
    ConfigResource,
    GroupState,
    MemberToRemove,
    NewTopic,
    OffsetSpec,
    OffsetTimestamp,
    QuotaAlteration,
    QuotaFilter,
    QuotaMatch,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    TransactionState,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.errors import (
    BrokerIdNotRegisteredError,
    DelegationTokenNotFoundError,
    DelegationTokenRequestNotAllowedError,
    InvalidUpdateVersionError,
    NoError,
    NoReassignmentInProgressError,
    RequestError,
    ResourceNotFoundError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from barnabas.structs import OffsetAndMetadata, TopicPartition, TopicPartitionReplica

pytestmark = pytest.mark.interop

SECRET = "a-secret-of-the-test"
WAIT_S = 30.0


class Server:
    """One running Apache Kafka."""

    def __init__(self, release: str, bootstrap: str, sasl: str, directories: list[str]) -> None:
        self.release = release
        self.bootstrap = bootstrap
        self.sasl = sasl
        self.directories = directories


@pytest.fixture(scope="module")
def server(kafka: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp(f"apache-{kafka.release}") / "data"
    plain, sasl, controller = free_port(), free_port(), free_port()
    directories = [str(data_dir / "logs-1"), str(data_dir / "logs-2")]
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="ada" password="{SECRET}" user_ada="{SECRET}";'
    )
    options = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
        "delegation.token.secret.key": SECRET,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ada",
        "log.dirs": ",".join(directories),
    }
    broker = kafka.start(data_dir, port=plain, options=options, heap="512m")
    yield Server(kafka.release, broker.bootstrap, f"127.0.0.1:{sasl}", directories)
    broker.stop()


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=server.bootstrap, client_id="interop") as client:
        yield client


@pytest.fixture
def topic(admin: KafkaAdminClient, name: str) -> str:
    """A topic of two partitions, with three records in the first."""
    topic = name.replace("[", "-").replace("]", "")
    admin.create_topics([NewTopic(topic, 2, 1)], wait_for_metadata=True)
    return topic


@pytest.fixture
def records(server: Server, topic: str) -> int:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(3):
        producer.produce(topic, str(number), partition=0, timestamp=1000 + number)
    assert producer.flush(WAIT_S) == 0
    return 3


def eventually(read: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """Return what is read once it is as wanted: brokers tell of changes a moment later."""
    deadline = time.monotonic() + WAIT_S
    while not wanted(value := read()):
        assert time.monotonic() < deadline, f"still {value!r}"
        time.sleep(0.02)
    return value


def test_topics(admin: KafkaAdminClient, topic: str) -> None:
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 2, 1)])
    both = admin.create_topics([NewTopic(topic), NewTopic(f"{topic}-2")], raise_errors=False)
    assert [code for _, code in both.topic_error_codes] == [36, 0]
    admin.create_topics({f"{topic}-3": {"num_partitions": 1}}, validate_only=True)
    assert f"{topic}-3" not in admin.list_topics()
    eventually(admin.list_topics, lambda names: {topic, f"{topic}-2"} <= set(names))
    admin.create_partitions({topic: 3})
    [described] = eventually(
        lambda: admin.describe_topics([topic]), lambda found: len(found[0]["partitions"]) == 3
    )
    assert "READ" in described["authorized_operations"]
    page = admin.describe_topic_partitions([topic], 2)
    assert page["next_cursor"] == {"topic_name": topic, "partition_index": 2}
    rest = admin.describe_topic_partitions([topic], 2, page["next_cursor"])
    assert [each["partition_index"] for each in rest["topics"][0]["partitions"]] == [2]
    topic_id = uuid.UUID(described["topic_id"])
    assert admin.describe_topics([topic_id])[0]["name"] == topic
    admin.delete_topics([topic_id, f"{topic}-2"])
    eventually(admin.list_topics, lambda names: topic not in names)
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_records_and_offsets(admin: KafkaAdminClient, topic: str, records: int) -> None:
    partition = TopicPartition(topic, 0)
    found = admin.list_partition_offsets({partition: OffsetSpec.LATEST})
    assert found[partition].offset == records
    assert admin.list_partition_offsets({partition: 1001})[partition].offset == 1
    assert admin.list_partition_offsets({partition: OffsetSpec.MAX_TIMESTAMP})[partition][:2] == (
        2,
        1002,
    )
    missing = TopicPartition(topic, 9)
    outcomes = admin.list_offsets({partition: OffsetSpec.EARLIEST, missing: OffsetSpec.LATEST})
    assert isinstance(outcomes[missing], UnknownTopicOrPartitionError)
    assert admin.delete_records({partition: 2})[partition]["low_watermark"] == 2
    assert admin.list_partition_offsets({partition: OffsetSpec.EARLIEST})[partition].offset == 2


def test_options_of_topics_and_brokers(admin: KafkaAdminClient, topic: str) -> None:
    resource = ConfigResource("topic", topic)
    changes = {"retention.ms": 5, "cleanup.policy": (AlterConfigOp.APPEND, "compact")}
    assert admin.alter_configs([ConfigResource("topic", topic, changes)]) == {
        "topic": {topic: "OK"}
    }
    described = eventually(
        lambda: admin.describe_configs([resource], include_synonyms=True)["topic"][topic],
        lambda found: "retention.ms" in found,
    )
    assert described["retention.ms"]["value"] == "5"
    assert described["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    assert described["retention.ms"]["config_type"] == "LONG"
    assert set(described["cleanup.policy"]["value"].split(",")) == {"delete", "compact"}
    admin.reset_configs([ConfigResource("topic", topic, ["retention.ms"])])
    eventually(
        lambda: admin.describe_configs([resource])["topic"][topic],
        lambda found: set(found) == {"cleanup.policy"},
    )
    replaced = ConfigResource("topic", topic, {"segment.ms": "60000"})
    admin.alter_configs([replaced], incremental=False)
    admin.alter_configs([ConfigResource("broker", 1, {"log.cleaner.threads": "2"})])
    eventually(
        lambda: admin.describe_configs([ConfigResource("broker", "1")])["broker"]["1"],
        lambda found: found.get("log.cleaner.threads", {}).get("value") == "2",
    )
    levels = admin.describe_configs([ConfigResource("broker_logger", "1")], config_filter="all")
    assert levels["broker_logger"]["1"]
    refused = admin.alter_configs(
        [ConfigResource("topic", topic, {"segment.ms": "never"})], raise_on_unknown=False
    )
    assert "InvalidConfigurationError" in refused["topic"][topic]
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_configs([ConfigResource("topic", "missing")])


def test_options_of_groups_and_client_metrics(admin: KafkaAdminClient, server: Server) -> None:
    metrics = {"metrics": "org.apache.kafka", "interval.ms": "60000"}
    answer = admin.incremental_alter_configs([ConfigResource("client_metrics", "watch", metrics)])
    assert answer == {"client_metrics": {"watch": "OK"}}
    assert eventually(admin.list_client_metrics_resources, bool) == ["watch"]
    assert admin.list_config_resources(["client_metrics"]) == {"client_metrics": ["watch"]}
    if server.release == "3.9":
        return  # which has no options of groups, and lists nothing else
    group = {"consumer.session.timeout.ms": "50000"}
    answer = admin.incremental_alter_configs([ConfigResource("group", "optioned", group)])
    assert answer == {"group": {"optioned": "OK"}}
    described = eventually(
        lambda: admin.describe_configs([ConfigResource("group", "optioned")])["group"]["optioned"],
        bool,
    )
    assert described["consumer.session.timeout.ms"]["value"] == "50000"
    assert "topic" in admin.list_config_resources()


def test_the_cluster(admin: KafkaAdminClient, server: Server) -> None:
    described = admin.describe_cluster()
    assert [each["broker_id"] for each in described["brokers"]] == [1]
    assert "ALTER" in described["authorized_operations"]
    quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
    assert (quorum["leader_id"], quorum["error"]) == (1, None)
    assert [each["replica_id"] for each in quorum["current_voters"]] == [1]
    features = admin.describe_features()
    lowest, highest = features["metadata.version"]["supported"]
    assert lowest <= features["metadata.version"]["finalized"][1] <= highest
    try:
        refused = admin.update_features({"metadata.version": highest + 1}, validate_only=True)
    except InvalidUpdateVersionError as failure:  # 4.x refuses the request as a whole
        refused = {"metadata.version": str(failure)}
    assert f"version {highest + 1}" in refused["metadata.version"]
    assert admin.api_versions()[3][1] >= 12
    with pytest.raises((BrokerIdNotRegisteredError, UnsupportedVersionError)):
        admin.unregister_broker(77)


def test_log_directories_and_reassignments(
    admin: KafkaAdminClient, server: Server, topic: str, records: int
) -> None:
    def home() -> list[str]:
        [answer] = admin.describe_log_dirs({topic: [0]})
        return [each["log_dir"] for each in answer["log_dirs"] if each["topics"]]

    [here] = home()
    [there] = [path for path in server.directories if path != here]
    replica = TopicPartitionReplica(topic, 0, 1)
    assert admin.alter_replica_log_dirs({replica: there}) == {replica: NoError}
    eventually(home, lambda found: found == [there])
    partition = TopicPartition(topic, 0)
    assert admin.alter_partition_reassignments({partition: [1]}) == {partition: None}
    eventually(admin.list_partition_reassignments, lambda moving: moving == {})
    assert admin.alter_partition_reassignments({partition: None}) == {
        partition: NoReassignmentInProgressError
    }
    elected = admin.elect_leaders("preferred", {topic: [0]})
    assert elected.replica_election_results[0].partition_result[0].error_code == 84


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups(
    admin: KafkaAdminClient, server: Server, topic: str, records: int, protocol: str
) -> None:
    if (server.release, protocol) == ("3.9", "consumer"):
        pytest.skip("the newer protocol is a preview in 3.9, which the client under it refuses")
    group = f"{topic}-group"
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + WAIT_S
        while (message := consumer.poll(0.1)) is None:
            assert time.monotonic() < deadline
        consumer.commit(message, asynchronous=False)
        described = eventually(
            lambda: admin.describe_groups([group])[group],
            lambda found: found["group_state"] == "Stable",
        )
        [member] = described["members"]
        assert member["member_assignment"]["assigned_partitions"] == [
            {"topic": topic, "partitions": [0, 1]}
        ]
        assert member["member_metadata"]["topics"] == [topic]
        listed = admin.list_groups(states_filter=[GroupState.STABLE], types_filter=[protocol])
        assert group in [each["group_id"] for each in listed]
        assert (group, "consumer") in admin.list_consumer_groups()
        assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}
        partition = TopicPartition(topic, 0)
        assert admin.list_consumer_group_offsets(group)[partition].offset == 1
        assert [each.state for each in admin.describe_consumer_groups([group])] == ["Stable"]
        if protocol == "classic":
            removed = MemberToRemove(member_id=member["member_id"], reason="a test")
            assert admin.remove_group_members(group, [removed]) == {member["member_id"]: NoError}
    finally:
        consumer.close()
    eventually(
        lambda: admin.describe_groups([group])[group]["group_state"], lambda state: state == "Empty"
    )
    # The other partition keeps the group alive when the offset of this one is deleted.
    other = TopicPartition(topic, 1)
    wanted = {partition: OffsetAndMetadata(2, "m", -1), other: OffsetAndMetadata(0, "", -1)}
    assert admin.alter_group_offsets(group, wanted) == {partition: NoError, other: NoError}
    assert admin.list_group_offsets(group)[group][partition].metadata == "m"
    reset = admin.reset_group_offsets(group, {partition: OffsetTimestamp(1001)})
    assert reset == {partition: {"error": NoError, "offset": 1}}
    assert admin.delete_group_offsets(group, [partition]) == {partition: NoError}
    assert admin.delete_groups([group, "missing"]) == {
        group: "OK",
        "missing": "GroupIdNotFoundError",
    }


def test_transactions(admin: KafkaAdminClient, server: Server, topic: str) -> None:
    name = f"{topic}-transaction"
    partition = TopicPartition(topic, 0)
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": name})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, "x", partition=0)
    assert producer.flush(WAIT_S) == 0
    listed = admin.list_transactions(state_filters=["ongoing"])
    assert [each.transactional_id for each in listed[1]] == [name]
    assert listed[1][0].state is TransactionState.ONGOING
    described = admin.describe_transactions([name])[name]
    assert (described.coordinator_id, described.topic_partitions) == (1, {partition})
    [state] = admin.describe_producers([partition])[partition].active_producers
    assert state.current_transaction_start_offset == 0
    assert admin.list_transactions(duration_filter_ms=3_600_000) == {1: []}
    assert admin.find_hanging_transactions() == []
    spec = AbortTransactionSpec(
        partition, state.producer_id, state.producer_epoch, max(state.coordinator_epoch, 0)
    )
    admin.abort_transaction(spec)
    eventually(
        lambda: admin.describe_producers([partition])[partition].active_producers,
        lambda found: [each.current_transaction_start_offset for each in found] == [-1],
    )
    fenced = admin.fence_producers([name])[name]
    assert not isinstance(fenced, RequestError)
    assert fenced.producer_epoch > state.producer_epoch
    [open_ones] = admin.list_transactions(state_filters=["ongoing"]).values()
    assert open_ones == []


def test_access_rules(admin: KafkaAdminClient, topic: str) -> None:
    rules = [
        ACL("User:eve", "*", operation, ACLPermissionType.DENY, pattern)
        for operation, pattern in (
            (ACLOperation.READ, ResourcePattern(ResourceType.TOPIC, topic)),
            (
                ACLOperation.WRITE,
                ResourcePattern(ResourceType.TOPIC, "pre", ACLResourcePatternType.PREFIXED),
            ),
        )
    ]
    bad = ACL("eve", "*", ACLOperation.READ, ACLPermissionType.ALLOW, rules[0].resource_pattern)
    created = admin.create_acls([*rules, bad])
    assert created["succeeded"] == rules
    assert [each.__name__ for each in created["failed"]] == ["InvalidRequestError"]
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    of_eve = ACLFilter("User:eve", None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    found, error = eventually(
        lambda: admin.describe_acls(of_eve), lambda answer: len(answer[0]) == 2
    )
    assert (set(found), error) == (set(rules), NoError)
    matching = ResourcePatternFilter(ResourceType.TOPIC, "prefixed", ACLResourcePatternType.MATCH)
    narrow = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, matching)
    assert admin.describe_acls(narrow)[0] == [rules[1]]
    [(given, removed, error)] = admin.delete_acls([of_eve])
    assert (given, set(removed), error) == (of_eve, set(rules), NoError)


def test_credentials(admin: KafkaAdminClient) -> None:
    made = UserScramCredentialUpsertion("bob", "SCRAM-SHA-512", "secret", iterations=8192)
    weak = UserScramCredentialUpsertion("weak", ScramMechanism.SCRAM_SHA_256, "x", iterations=1)
    gone = UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256)
    answer = admin.alter_user_scram_credentials([made, weak, gone])
    assert answer["bob"] is None
    assert "iterations" in str(answer["weak"]).lower()
    assert answer["nobody"] is not None
    described = eventually(admin.describe_user_scram_credentials, lambda found: "bob" in found)
    [info] = described["bob"]["credential_infos"]
    assert info == {"mechanism": ScramMechanism.SCRAM_SHA_512, "iterations": 8192}
    missing = admin.describe_user_scram_credentials(["nobody"])["nobody"]
    assert missing["error"] is not None
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", "SCRAM-SHA-512")])
    eventually(admin.describe_user_scram_credentials, lambda found: "bob" not in found)
    assert ResourceNotFoundError.errno == 91


def test_quotas(admin: KafkaAdminClient) -> None:
    ada = {"user": "ada", "client-id": None}
    outcomes = admin.alter_client_quotas(
        [
            QuotaAlteration(ada, {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}),
            QuotaAlteration({"user": "ada"}, {"no_such_rate": 1.0}),
        ]
    )
    # The broker answers in an order of its own.
    errors = {len(outcome.entity): outcome.error for outcome in outcomes}
    assert errors[2] is None
    assert isinstance(errors[1], RequestError)
    of_ada = [QuotaFilter("user", QuotaMatch.EXACT, "ada")]
    [found] = eventually(lambda: admin.describe_client_quotas(of_ada), bool)
    assert (found.entity, found.values) == (
        ada,
        {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0},
    )
    assert admin.describe_client_quotas(of_ada, strict=True) == []
    removal = {"producer_byte_rate": None, "consumer_byte_rate": None}
    admin.alter_client_quotas([QuotaAlteration(ada, removal)])
    eventually(lambda: admin.describe_client_quotas(of_ada), lambda found: found == [])


def test_delegation_tokens(admin: KafkaAdminClient, server: Server) -> None:
    with pytest.raises(DelegationTokenRequestNotAllowedError):
        admin.create_delegation_token()
    with KafkaAdminClient(
        bootstrap_servers=server.sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="ada",
        sasl_plain_password=SECRET,
    ) as ada:
        token = ada.create_delegation_token(renewers=["User:bob"], lifetime_ms=3_600_000)
        assert (token.owner, token.renewers) == ("User:ada", ("User:bob",))
        assert token.max_ms - token.issue_ms == 3_600_000
        [seen] = eventually(lambda: ada.describe_delegation_token(["User:ada"]), bool)
        assert seen == token
        assert token.issue_ms < ada.renew_delegation_token(token.hmac) <= token.max_ms
        ada.expire_delegation_token(token.hmac)
        eventually(ada.describe_delegation_token, lambda found: found == [])
        with pytest.raises(DelegationTokenNotFoundError):
            ada.renew_delegation_token(b"no such token")

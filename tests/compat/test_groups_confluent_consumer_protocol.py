"""Consumer groups of KIP-848 with confluent-kafka: one heartbeat, the broker assigns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from tests.compat.conftest import QUICK
from tests.compat.group_members import drive
from tests.compat.samples import until_deadline
from tests.compat.test_groups_confluent_kafka import Crowd, create, places, produce
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import start_barnabas

pytestmark = pytest.mark.compat

# These belong to the classic protocol: librdkafka refuses them in the other one.
WITHOUT = dict.fromkeys(
    ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
)
CONSUMER = {"group_protocol": "consumer", **WITHOUT}


@pytest.fixture(scope="module")
def quick_bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a broker with short sessions; of Apache Kafka 4: 3.9 has an early form."""
    if request.config.getoption("--broker") != "apache":
        running = start_barnabas(tmp_path_factory.mktemp("consumer") / "data", options=QUICK)
        yield running.bootstrap
        running.stop()
        return
    try:
        running = Distribution.fetch("4").start(
            tmp_path_factory.mktemp("apache-4") / "data", options=QUICK
        )
    except Unavailable as why:
        pytest.skip(str(why))
    yield running.bootstrap
    running.stop()


@pytest.fixture
def crowd(quick_bootstrap: str, name: str) -> Iterator[Crowd]:
    crowd = Crowd(quick_bootstrap, f"group-of-{name}")
    yield crowd
    crowd.close()
    crowd.ledger.check()


def stable(crowd: Crowd, admin: AdminClient) -> Any:
    """Describe the group once every member has said, in a heartbeat, that it has its share."""
    for _ in until_deadline("the group is stable"):
        described = admin.describe_consumer_groups([crowd.group])[crowd.group].result(30)
        if described.state is ConsumerGroupState.STABLE:
            break
        drive(crowd.members, lambda: True, "one more turn")
    return described


@pytest.mark.parametrize("count", [1, 2, 7])
def test_members_share_a_topic_and_take_over_from_who_leaves(
    crowd: Crowd, name: str, count: int
) -> None:
    wanted = create(crowd.bootstrap, name, 8)
    crowd.begin_at_zero(wanted)
    produce(crowd.bootstrap, wanted, 10)
    crowd.join([name], count, **CONSUMER)
    crowd.settle(wanted, f"{count} members share 8 partitions")
    crowd.read(wanted, 10, "all records are processed")
    crowd.join([name], **CONSUMER)
    crowd.settle(wanted, "one more has its share")
    crowd.leave(crowd.members[0])
    crowd.settle(wanted, "the others share what one left")
    produce(crowd.bootstrap, wanted, 10)
    crowd.read(wanted, 20, "what came later is processed too")


def test_a_static_member_restarts_with_its_partitions(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 4)
    (first,) = crowd.join([name], group_instance_id="one", **CONSUMER)
    (second,) = crowd.join([name], group_instance_id="two", **CONSUMER)
    crowd.settle(wanted, "two static members share")
    had, given_up = crowd.ledger.of(first.name), len(crowd.ledger.revocations[second.name])
    crowd.leave(first)
    (again,) = crowd.join([name], group_instance_id="one", **CONSUMER)
    crowd.settle(wanted, "the restarted one has its partitions again")
    assert crowd.ledger.of(again.name) == had
    assert len(crowd.ledger.revocations[second.name]) == given_up


def test_a_pattern_is_matched_by_the_broker(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, f"{name}.first", 2)
    crowd.join([f"^{name.replace('.', '[.]')}[.].*"], 2, **CONSUMER)
    crowd.settle(wanted, "the first topic is shared")
    wanted += create(crowd.bootstrap, f"{name}.second", 2)
    crowd.settle(wanted, "the second one is found and shared")


def test_a_group_is_described_and_changes_its_type_when_it_is_empty(
    crowd: Crowd, name: str
) -> None:
    wanted = create(crowd.bootstrap, name, 2)
    crowd.begin_at_zero(wanted)
    produce(crowd.bootstrap, wanted, 3)
    crowd.join([name], 2, **CONSUMER)
    crowd.settle(wanted, "two members share")
    crowd.read(wanted, 3, "all records are processed")
    admin = AdminClient({"bootstrap.servers": crowd.bootstrap})
    described = stable(crowd, admin)
    assert described.type is ConsumerGroupType.CONSUMER
    owned = {
        member.client_id: places(member.assignment.topic_partitions) for member in described.members
    }
    assert owned == {member.name: crowd.ledger.of(member.name) for member in crowd.members}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([crowd.group])[crowd.group].result(30)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    for member in list(crowd.members):
        crowd.leave(member)
    # The same group in the classic protocol goes on where the other one stopped.
    produce(crowd.bootstrap, wanted, 3)
    crowd.join([name])
    crowd.settle(wanted, "a classic member has both partitions")
    crowd.read(wanted, 6, "only what is new is read, and committed")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_rolls_from_one_protocol_to_the_other_and_back(
    crowd: Crowd, name: str, strategy: str
) -> None:
    """Members are replaced one by one; the ledger sees that nothing is owned twice or lost."""
    wanted = create(crowd.bootstrap, name, 6)
    crowd.begin_at_zero(wanted)
    classic = {"partition_assignment_strategy": strategy}
    admin = AdminClient({"bootstrap.servers": crowd.bootstrap})
    crowd.join([name], 3, **classic)
    crowd.settle(wanted, "three classic members share")
    count = 0
    for protocol, kind in ((CONSUMER, ConsumerGroupType.CONSUMER), (classic, None)):
        for _ in range(3):
            count += 5
            produce(crowd.bootstrap, wanted, 5)
            crowd.join([name], **protocol)
            crowd.settle(wanted, "one more has its share")
            crowd.leave(crowd.members[0])
            crowd.settle(wanted, "the others share what one left")
            crowd.read(wanted, count, "all records are processed, and committed")
        described = stable(crowd, admin)
        assert len(described.members) == 3
        assert described.type is (kind or ConsumerGroupType.CLASSIC)

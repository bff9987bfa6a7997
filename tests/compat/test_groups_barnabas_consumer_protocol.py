"""Groups of KIP-848 with our own consumer, alone and together with librdkafka's.

Against Apache Kafka these run on version 4, which has the protocol in its final form.
"""

from __future__ import annotations

import re

import pytest
from tests.compat import test_groups_barnabas, test_groups_confluent_consumer_protocol
from tests.compat.test_groups_barnabas import Crowd, create, produce
from tests.compat.test_groups_confluent_kafka import ConfluentMember

from barnabas import KafkaAdminClient

pytestmark = pytest.mark.compat

quick_bootstrap = test_groups_confluent_consumer_protocol.quick_bootstrap
crowd = test_groups_barnabas.crowd
admin = test_groups_barnabas.admin


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_come_and_go(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str, assignor: str
) -> None:
    """The broker's assignors share and share again."""
    wanted = create(admin, name, 6)
    produce(quick_bootstrap, wanted, 10)
    more = {"topics": [name], "group_protocol": "consumer", "group_remote_assignor": assignor}
    crowd.join(3, **more)
    crowd.drive_to_shares(2, 2, 2)
    crowd.leave(crowd.members[0])
    crowd.drive_to_shares(3, 3)
    produce(quick_bootstrap, wanted, 10)
    crowd.drive(
        lambda: crowd.ledger.committed == dict.fromkeys(wanted, 20),
        "all records are processed and committed",
    )


def test_the_broker_matches_a_pattern(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str
) -> None:
    """And follows it when topics come."""
    wanted = create(admin, f"{name}.first", 2)
    crowd.join(2, pattern=f"^{re.escape(name)}[.].*", group_protocol="consumer")
    crowd.drive(lambda: set(crowd.ledger.owner) == set(wanted), "the first topic is found")
    wanted += create(admin, f"{name}.second", 2)
    crowd.drive(lambda: set(crowd.ledger.owner) == set(wanted), "the second topic is found")
    produce(quick_bootstrap, wanted, 4)
    crowd.drive(lambda: crowd.ledger.has_read(wanted, 4), "all records are processed")


def test_a_static_member_comes_back_to_its_partitions(
    admin: KafkaAdminClient, crowd: Crowd, name: str
) -> None:
    """It left for a while; nobody else was given what it had."""
    create(admin, name, 4)
    more = {"topics": [name], "group_protocol": "consumer"}
    [first] = crowd.join(group_instance_id="one", **more)
    [second] = crowd.join(group_instance_id="two", **more)
    crowd.drive_to_shares(2, 2)
    had, told = crowd.ledger.of(first.name), crowd.ledger.assignments[second.name]
    crowd.leave(first)
    [again] = crowd.join(group_instance_id="one", **more)
    crowd.drive_to_shares(2, 2)
    assert crowd.ledger.of(again.name) == had
    assert crowd.ledger.assignments[second.name] == told


def test_librdkafka_and_ours_share_a_group_of_the_new_protocol(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str
) -> None:
    """KIP-848: the broker decides, and both follow."""
    wanted = create(admin, name, 4)
    crowd.join(topics=[name], group_protocol="consumer")
    crowd.drive_to_shares(4)
    confluent = ConfluentMember(
        quick_bootstrap,
        crowd.group,
        [name],
        crowd.ledger,
        crowd.next_name(),
        group_protocol="consumer",
        partition_assignment_strategy=None,
        session_timeout_ms=None,
        heartbeat_interval_ms=None,
    )
    crowd.members.append(confluent)
    crowd.drive_to_shares(2, 2)
    produce(quick_bootstrap, wanted, 5)
    crowd.drive(lambda: crowd.ledger.has_read(wanted, 5), "all records are processed")

"""Which replica a consumer is sent to: a table of racks, in-sync replicas and offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from barnabas.broker.replication.preferred_replica import SELECTORS, preferred_replica
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import ConfigError
from barnabas.replication.follower_progress import Follower
from barnabas.replication.partition import Partition

BROKERS = {
    number: BrokerView(number, {}, rack)
    for number, rack in {0: "red", 1: "green", 2: "blue", 3: "blue", 4: None}.items()
}


@dataclass
class Led:
    """The part of a partition that is looked at."""

    isr: tuple[int, ...] = (0, 1, 2, 3, 4)
    followers: list[Follower] = field(default_factory=list)


def led(*isr: int, **ends: int) -> Partition:
    partition = Led(isr or (0, 1, 2, 3, 4))
    for number in (1, 2, 3, 4):
        follower = Follower(number)
        follower.fetched(ends.get(f"of_{number}", 100), 10, -1, 100, 0)
        partition.followers.append(follower)
    return cast(Partition, cast(Any, partition))


@pytest.mark.parametrize(
    ("partition", "offset", "rack", "chosen"),
    [
        (led(), 50, "green", 1),
        (led(), 50, "red", None),
        (led(), 50, "", None),
        (led(), 50, "white", None),
        (led(0, 2), 50, "green", None),
        (led(), 9, "green", None),
        (led(), 10, "green", 1),
        (led(of_1=50), 50, "green", 1),
        (led(of_1=50), 51, "green", None),
        (led(of_2=99), 50, "blue", 3),
        (led(of_3=99), 50, "blue", 2),
        (led(), 50, "blue", 2),
        (led(0, 3), 50, "blue", 3),
    ],
)
def test_choice(partition: Partition, offset: int, rack: str, chosen: int | None) -> None:
    assert preferred_replica(partition, offset, rack, 0, BROKERS) == chosen


def test_a_dead_broker_is_not_chosen() -> None:
    alive = {number: view for number, view in BROKERS.items() if number != 1}
    assert preferred_replica(led(), 50, "green", 0, alive) is None


def test_the_option_takes_kafkas_names() -> None:
    for name in SELECTORS:
        parsed = BrokerOptions.parse({"replica.selector.class": name})
        assert parsed.replica_selector_class == name
    with pytest.raises(ConfigError, match=r"replica\.selector\.class"):
        BrokerOptions.parse({"replica.selector.class": "com.example.Mine"})

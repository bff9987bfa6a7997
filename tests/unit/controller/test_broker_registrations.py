"""Who is registered, and who came and went: another epoch is another life."""

from __future__ import annotations

import pytest
from tests.unit.controller.asking import runs
from tests.unit.controller.trees import prepared

from barnabas.controller.broker_registrations import Roster, Turnover, turnover
from barnabas.coordination.contract import Event
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView


def view(broker: int, epoch: int, port: int = 9092) -> BrokerView:
    return BrokerView(broker, {"IN": ("host", port)}, None, epoch)


def roster(*views: BrokerView) -> dict[int, BrokerView]:
    return {each.broker_id: each for each in views}


@pytest.mark.parametrize(
    ("known", "present", "expected"),
    [
        (roster(), roster(view(1, 5)), Turnover([], [1], [])),
        (roster(view(1, 5)), roster(), Turnover([1], [], [])),
        (roster(view(1, 5)), roster(view(1, 5)), Turnover([], [], [])),
        (roster(view(1, 5)), roster(view(1, 6)), Turnover([1], [1], [])),
        (roster(view(1, 5)), roster(view(1, 5, 9093)), Turnover([], [], [1])),
        (
            roster(view(3, 1), view(2, 1), view(1, 1)),
            roster(view(4, 9), view(2, 8), view(1, 1, 9093)),
            Turnover([2, 3], [2, 4], [1]),
        ),
    ],
)
def test_turnover(
    known: dict[int, BrokerView], present: dict[int, BrokerView], expected: Turnover
) -> None:
    assert turnover(known, present) == expected


@runs
async def test_the_epoch_of_a_broker_is_the_creation_of_its_node() -> None:
    tree = await prepared()
    heard: list[Event] = []
    reader = Roster(tree, heard.append)
    assert await reader.read() == {}
    registration = nodes.BrokerRegistration(
        [("IN", "host", 9092), ("OUT", "::1", 9093)], {"IN": "SSL", "OUT": "PLAINTEXT"}, "r", 7
    )
    path = nodes.broker_path(12)
    await tree.create(path, registration.encode(), ephemeral=True)
    stat = await tree.exists(path)
    assert stat is not None
    found = await reader.read()
    assert found == {
        12: BrokerView(
            12,
            {"IN": ("host", 9092), "OUT": ("::1", 9093)},
            "r",
            stat.czxid,
            {"IN": 1, "OUT": 0},
        )
    }
    assert len(heard) == 1
    await tree.set(path, registration.encode())
    assert len(heard) == 2, "an address that changes is heard of, too"


@runs
async def test_what_is_no_registration_is_left_out() -> None:
    tree = await prepared()
    for name in ("strange", "-1", "3x"):
        await tree.create(f"{nodes.BROKER_IDS}/{name}", b"{}")
    await tree.create(nodes.broker_path(2), b"not json")
    good = nodes.BrokerRegistration([("IN", "host", 9092)], {"IN": "PLAINTEXT"}, None, 7)
    await tree.create(nodes.broker_path(1), good.encode())
    assert list(await Roster(tree, lambda _: None).read()) == [1]

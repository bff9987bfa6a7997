"""One topic: its partitions, options, rates and users."""

from __future__ import annotations

import pytest
from tests.unit.broker.serving import batch_of, produce_request
from tests.unit.console.site import Site, text_of

from barnabas.admin.topic_descriptions import PartitionDescription
from barnabas.console.pages.topic import state_of


def test_its_page_has_partitions_options_and_producers(site: Site, topic: str) -> None:
    site.produce(topic, "a", "b", "c")
    page = text_of(site.page(f"/topics/{topic}"))
    assert "2 partitions" in page
    assert "retention.ms 604800000 default" in page
    assert "Idempotent and transactional producers" in page
    [first, second] = sorted(
        site.get(f"/topics/{topic}/partitions.json").json()["rows"],
        key=lambda row: row["number"],
    )
    assert (first["start"], first["end"], first["kept"]) == (0, 3, 3)
    assert (second["start"], second["end"], second["kept"]) == (0, 0, 0)
    assert first["bytes"] > 0 == second["bytes"]
    assert (first["state"], first["leader"], first["isr"]) == ("ok", 0, "0")


def test_its_groups_and_clients_are_listed(site: Site, topic: str) -> None:
    site.produce(topic, *"abcde")
    site.commit(f"readers of {topic}", topic, 2)
    wire = site.serving.connect()
    wire.ask(produce_request(topic, batch_of([b"f"])), 9)
    page = text_of(site.page(f"/topics/{topic}"))
    assert f"readers of {topic} Empty 1 3" in page or f"readers of {topic} Empty 1 4" in page
    assert "test writes User:ANONYMOUS 127.0.0.1" in page
    assert f"/why?of=partition&amp;name={topic}-0" in site.page(f"/topics/{topic}")
    assert "Newest record of the oldest segment" in page


def test_its_lists_are_sorted_on_its_page(site: Site, topic: str) -> None:
    page = site.page(f"/topics/{topic}")
    assert f'href="/topics/{topic}?sort=kept"' in page
    assert f'href="/topics/{topic}/partitions.json?sort=' in page
    assert site.get(f"/topics/{topic}?sort=-kept").status_code == 200


@pytest.mark.parametrize(
    ("leader", "replicas", "isr", "state"),
    [
        (-1, (1, 2), (), "no leader"),
        (1, (1, 2), (1,), "under-replicated"),
        (2, (1, 2), (1, 2), "not preferred"),
        (1, (1, 2), (2, 1), "ok"),
    ],
)
def test_the_state_of_a_partition(
    leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], state: str
) -> None:
    assert state_of(PartitionDescription(0, leader, 3, replicas, isr, (), None)) == state

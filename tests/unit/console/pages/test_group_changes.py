"""What is done to groups: reset and undo, offsets and members removed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.unit.broker.serving import Serving
from tests.unit.console.site import Site, confirmation, text_of

from barnabas.aio import AIOKafkaConsumer

GROUPS = count()


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with two topics of five records."""
    with Site(tmp_path_factory.mktemp("data")) as running:
        for topic in ("orders", "payments"):
            running.create_topic(topic)
            running.produce(topic, *"abcde")
        yield running


@pytest.fixture
def group(read: Site) -> str:
    """A group that has read two records of orders."""
    name = f"billing {next(GROUPS)}"
    read.commit(name, "orders", 2)
    return name


def committed(site: Site, group: str) -> dict[str, int]:
    """Return what a group has committed, by topic."""
    rows = site.get(f"/groups/{group.replace(' ', '%20')}/lag.json").json()["rows"]
    return {row["topic"]: row["committed"] for row in rows}


def test_a_reset_is_undone_also_where_nothing_was_committed(read: Site, group: str) -> None:
    base = f"/groups/{group}"
    assert read.post(f"{base}/undo").status_code == 404
    for topic in ("orders", "payments"):
        read.do(f"{base}/reset", topic=topic, to="latest")
    assert committed(read, group) == {"orders": 5, "payments": 5}
    page = read.page(base)
    assert "You reset it at" in page
    preview = read.post(f"{base}/undo")
    assert "payments 0 5 nothing" in text_of(preview.text)
    assert committed(read, group) == {"orders": 5, "payments": 5}, "a preview changes nothing"
    assert "as before" in text_of(read.send(*confirmation(preview.text)).text)
    assert committed(read, group) == {"orders": 5}, "only the last reset is undone"
    assert "You reset it at" not in read.page(base)
    read.do(f"{base}/reset", topic="orders", to="earliest")
    read.do(f"{base}/undo")
    assert committed(read, group) == {"orders": 5}


def test_offsets_of_one_topic_are_deleted_and_come_back(read: Site, group: str) -> None:
    read.commit(group, "payments", 3)
    base = f"/groups/{group}"
    preview = read.post(f"{base}/forget", {"topic": "payments"})
    assert "payments 0 3" in text_of(preview.text)
    assert "orders" not in text_of(preview.text)
    read.send(*confirmation(preview.text))
    assert committed(read, group) == {"orders": 2}
    read.do(f"{base}/undo")
    assert committed(read, group) == {"orders": 2, "payments": 3}
    assert read.post(f"{base}/forget", {"topic": "absent"}).status_code == 404


def test_a_member_is_removed(read: Site) -> None:
    consumer = read.run(_joined(read.serving))
    try:
        page = text_of(read.page("/groups/living"))
        assert "reader <b>" in page
        assert "Members" in page
        preview = read.post("/groups/living/remove")
        shown = text_of(preview.text)
        assert "reader <b> /127.0.0.1 reader-1 1" in shown, shown
        assert read.post("/groups/living/remove", {"member": "member x"}).status_code == 404
        reset = read.post("/groups/living/reset", {"confirmed": "yes", "move": "orders:0:0"})
        assert reset.status_code == 409
        assert "orders-0:" in text_of(reset.text)
        assert "removed" in text_of(read.send(*confirmation(preview.text)).text)
        wrong = read.post("/groups/living/remove", {"member": "someone", "confirmed": "yes"})
        assert wrong.status_code == 400
    finally:
        read.run(consumer.stop())
    read.serving.lines.clear()


async def _joined(serving: Serving) -> Any:
    host, port = serving.address
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=f"{host}:{port}",
        group_id="living",
        client_id="reader <b>",
        group_instance_id="reader-1",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    await consumer.getone()
    return consumer

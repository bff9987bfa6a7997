"""Transactions that no coordinator will end: found in a topic, and aborted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.admin.producers import describe_producers
from barnabas.console.pages import hanging
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

KEY = TopicPartition("stuck", 0)


def hang(site: Site) -> int:
    """Leave an open transaction behind; return its producer."""
    wire = site.serving.connect()
    producer_id = 987_654
    batch = build_batch(
        [(1000, None, b"one", ())],
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    data = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        transactional_id="gone",
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name="stuck", partition_data=[data])],
    )
    answer = wire.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return producer_id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker that takes records of a transaction that its coordinator does not know."""
    options = {"transaction.partition.verification.enable": "false"}
    with Site(tmp_path_factory.mktemp("data"), options) as running:
        yield running


def test_a_topic_is_looked_in_by_name(site: Site) -> None:
    assert "Name a topic to look in." in site.page("/hanging-transactions")
    assert site.get("/hanging-transactions?topic=absent").status_code == 404
    assert site.post("/hanging-transactions/abort", {"topic": ""}).status_code == 400
    assert 'href="/hanging-transactions"' in site.page("/transactions")


def test_one_that_hangs_is_found_and_aborted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.create_topic("stuck")
    producer_id = hang(site)
    assert len(site.run(describe_producers(site.client(), [KEY]))[KEY]) == 1
    monkeypatch.setattr(hanging, "SILENT_MS", -60_000)
    [row] = site.get("/hanging-transactions.json?topic=stuck").json()["rows"]
    assert (row["partition"], row["start"], row["producer"]) == ("stuck-0", "0", str(producer_id))
    page = site.page("/hanging-transactions?topic=stuck")
    assert "/topics/stuck/records?from=offset&amp;partition=0&amp;offset=0" in page
    preview = site.post("/hanging-transactions/abort", {"topic": "stuck"})
    assert "barnabas transactions abort stuck --partition 0 --start-offset 0" in preview.text
    done = site.do("/hanging-transactions/abort", topic="stuck")
    assert "stuck-0: aborted." in text_of(done.text)
    assert "None hangs." in site.page("/hanging-transactions?topic=stuck")

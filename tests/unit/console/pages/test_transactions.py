"""Transactions that are open, and their abort."""

from __future__ import annotations

from typing import Any

from tests.unit.broker.serving import Serving
from tests.unit.console.site import Site, text_of

from barnabas.aio import AIOKafkaProducer


def test_an_open_transaction_is_shown_by_age_and_aborted(site: Site) -> None:
    site.create_topic("payments")
    assert "No transaction is open." in site.page("/transactions")
    producer = site.run(_begun(site.serving))
    try:
        [row] = site.get("/transactions.json").json()["rows"]
        assert (row["name"], row["state"], row["partitions"]) == ("tx <b>1", "Ongoing", 1)
        assert row["age_ms"] >= 0
        page = site.page("/transactions/tx%20%3Cb%3E1")
        assert "payments 0 0" in text_of(page)
        assert "<b>1" not in page
        done = site.do("/transactions/tx%20%3Cb%3E1/abort")
        assert "aborted" in text_of(done.text)
        assert "It is open nowhere." in site.page("/transactions/tx%20%3Cb%3E1")
    finally:
        site.run(_given_up(producer))
    assert site.get("/transactions/absent").status_code == 404


async def _begun(serving: Serving) -> Any:
    host, port = serving.address
    producer = AIOKafkaProducer(
        bootstrap_servers=f"{host}:{port}", transactional_id="tx <b>1", linger_ms=0
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait("payments", b"one")
    return producer


async def _given_up(producer: Any) -> None:
    await producer.abort_transaction()
    await producer.stop()

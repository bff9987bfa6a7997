"""Transactions that are open, late, unfinished, or could not be verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.broker.coordinated import COORDINATED, TRANSACTION, find
from tests.unit.broker.coordinators.test_transactions import (
    end,
    enlist,
    init,
    produce,
    wait_for_state,
)
from tests.unit.broker.monitoring.scraping import Series, scraped
from tests.unit.broker.serving import Serving, create_topic

MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
FAILURES = "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count"


def scrape(serving: Serving) -> Series:
    return serving.inside(lambda: scraped(serving.broker.metrics))


def test_an_open_transaction_is_seen_with_its_age(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t", 2)
        find(wire, "tx", TRANSACTION)
        producer = init(wire, "tx", timeout_ms=600_000)
        found = scrape(serving)
        assert found["barnabas_transactional_ids"] == 1
        assert found["barnabas_transactions_open"] == 0
        assert found["barnabas_transactions_oldest_open_seconds"] == 0
        enlist(wire, "tx", producer, "t", 0)
        assert produce(wire, "tx", producer, "t", "v") == 0
        wall = serving.broker._wall_clock
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(serving.broker, "_wall_clock", lambda: wall() + 100)
            found = scrape(serving)
            assert found["barnabas_transactions_open"] == 1
            assert 100 <= found["barnabas_transactions_oldest_open_seconds"] < 160
            assert found["kafka_server_replicamanager_produceridcount"] == 1
            late = found["kafka_server_replicamanager_partitionswithlatetransactionscount"]
            assert late == 1, "the time of its record is long ago"
        assert end(wire, "tx", producer) == 0
        wait_for_state(wire, "tx", "CompleteCommit")
        found = scrape(serving)
        assert found["barnabas_transactions_open"] == 0
        assert found["barnabas_transaction_markers_pending"] == 0
        assert found[f"{MARKERS}unknowndestinationqueuesize"] == 0
        assert found[f"{MARKERS}logappendretryqueuesize"] == 0
        assert found["barnabas_transactions_timed_out_total"] == 0


def test_a_time_out_and_a_failed_verification_are_counted(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t", 2)
        find(wire, "tx", TRANSACTION)
        producer = init(wire, "tx")
        assert scrape(serving)[FAILURES] == 0
        assert produce(wire, "tx", producer, "t", "not enlisted") != 0
        assert scrape(serving)[FAILURES] == 1
        enlist(wire, "tx", producer, "t", 0)
        wall = serving.broker._wall_clock
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(serving.broker, "_wall_clock", lambda: wall() + 61)
            serving.inside(serving.broker.transactions.abort_timed_out)
        wait_for_state(wire, "tx", "CompleteAbort")
        assert scrape(serving)["barnabas_transactions_timed_out_total"] == 1


def test_a_load_of_transactions_is_timed(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        clock_ms = serving.broker.timer.now_ms
        serving.inside(lambda: serving.broker.transactions.load_times.loaded(70, clock_ms()))
        found = scrape(serving)
        prefix = "kafka_server_transaction_coordinator_metrics_partition_load_time_"
        assert (found[f"{prefix}max"], found[f"{prefix}avg"]) == (70, 70)


def test_what_other_brokers_verify_is_timed(tmp_path: Path) -> None:
    """Asked of a coordinator that cannot be reached: every partition has failed."""
    import asyncio

    from barnabas.model.ids import TopicPartition

    with Serving(tmp_path, COORDINATED) as serving:
        find(serving.connect(), "tx", TRANSACTION)
        transactions = serving.broker.transactions

        async def verify(coordinator: int) -> object:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(transactions, "coordinator_of", lambda _: coordinator)
                producers = {TopicPartition("t", number): (5, 0) for number in range(2)}
                return await transactions.verify_remotely("tx", producers)

        asyncio.run_coroutine_threadsafe(verify(77), serving.broker.loop).result(60)
        found = scrape(serving)
        assert found[FAILURES] == 2
        assert found["kafka_server_addpartitionstotxnmanager_verificationtimems"] == 0
        asyncio.run_coroutine_threadsafe(verify(0), serving.broker.loop).result(60)
        found = scrape(serving)
        assert found[FAILURES] == 4, "it has answered: the id is unknown"
        assert found["kafka_server_addpartitionstotxnmanager_verificationtimems"] == 1

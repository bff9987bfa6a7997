"""`barnabas transactions` against a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, TRANSACTION, find
from tests.unit.broker.coordinators.test_transactions import (
    end,
    enlist,
    init,
    produce,
    stable_offset,
    wait_for_state,
)
from tests.unit.broker.serving import Wire, create_topic

from barnabas.cli.main import main
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    # Without verification a transaction can be begun that its coordinator never hears of.
    options = {**COORDINATED, "transaction.partition.verification.enable": "false"}
    with Cluster(options=options) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def barnabas(
    bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", bootstrap)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    host, _, port = bootstrap.partition(":")
    with Wire((host, int(port))) as connection:
        find(connection, "any", TRANSACTION)
        yield connection


def test_transactions_are_listed_and_described(barnabas: Any, wire: Wire) -> None:
    create_topic(wire, "t")
    producer = init(wire, "pay")
    assert enlist(wire, "pay", producer, "t", 0) == [0]
    code, out, _ = barnabas("transactions", "list", "--state", "Ongoing")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["id", "state", "producer", "coordinator"],
        ["pay", "Ongoing", str(producer[0]), "0"],
    ]
    (document,) = json.loads(barnabas("transactions", "describe", "pay", "--json")[1])
    assert (document["state"], document["partitions"]) == ("Ongoing", [["t", 0]])
    assert (document["producer_id"], document["producer_epoch"]) == producer
    assert document["timeout_ms"] == 60_000
    code, out, err = barnabas("transactions", "describe", "pay", "never-was")
    assert code == 1
    assert "t-0" in out
    assert err.endswith("the transactional id does not exist (TRANSACTIONAL_ID_NOT_FOUND)\n")
    refused = barnabas("transactions", "list", "--state", "Sleeping")
    assert refused[0] == 1
    assert "does not know the transaction state Sleeping" in refused[2]
    assert end(wire, "pay", producer) == 0
    wait_for_state(wire, "pay", "CompleteCommit")
    _, out, _ = barnabas("transactions", "describe", "pay")
    assert out.split()[-2:] == ["-", "-"], "it is not open any more, nowhere"


def test_a_hanging_transaction_is_found_and_aborted(barnabas: Any, wire: Wire) -> None:
    create_topic(wire, "hung")
    producer = init(wire, "gone")
    assert enlist(wire, "gone", producer, "hung", 0) == [0]
    assert produce(wire, "gone", producer, "hung", "first") == 0
    assert stable_offset(wire, "hung") == 0
    (found,) = json.loads(barnabas("transactions", "open", "hung", "--json")[1])
    assert (found["partition"], found["start_offset"]) == (0, 0)
    assert (found["producer_id"], found["producer_epoch"]) == producer
    abort = ("transactions", "abort", "hung", "--partition", "0", "--start-offset")
    code, _, err = barnabas(*abort, "5")
    assert code == 1
    assert "hung-0: no open transaction starts at offset 5" in err
    code, out, _ = barnabas(*abort, "0")
    assert (code, out) == (
        0,
        f"aborted the transaction of producer {producer[0]} on hung-0\n",
    )
    assert stable_offset(wire, "hung") == 2
    assert json.loads(barnabas("transactions", "open", "hung", "--json")[1]) == []
    assert end(wire, "gone", producer, committed=False) == 0
    wait_for_state(wire, "gone", "CompleteAbort")


def test_hanging_transactions_are_found_across_topics(barnabas: Any, wire: Wire) -> None:
    for topic in ("stuck", "busy", "elsewhere"):
        create_topic(wire, topic)
    alive = init(wire, "alive")
    assert enlist(wire, "alive", alive, "busy", 0) == [0]
    assert produce(wire, "alive", alive, "busy", "first") == 0
    # The id's coordinator knows a transaction of this producer, but not that it is here too.
    assert produce(wire, "alive", alive, "elsewhere", "lost") == 0
    ghost = (987_654, 3)
    assert produce(wire, "ghost", ghost, "stuck", "first") == 0

    def found(*more: str) -> list[tuple[str, int]]:
        code, out, _ = barnabas("transactions", "find-hanging", "--json", *more)
        assert code == 0
        return [(each["topic"], each["producer_id"]) for each in json.loads(out)]

    lost = [("elsewhere", alive[0]), ("stuck", ghost[0])]
    assert found() == lost
    assert found("--topic", "stuck") == lost[1:]
    assert found("--broker", "0") == lost
    assert found("--broker", "7") == []
    assert found("--topic", "busy") == []
    # The records are from 2023: nothing is silent for a thousand years.
    assert found("--max-transaction-timeout", str(1000 * 365 * 24 * 60)) == []
    code, out, _ = barnabas("transactions", "find-hanging", "--topic", "stuck")
    assert code == 0
    assert out.splitlines()[1].split()[:5] == ["stuck", "0", "0", "987654", "3"]
    code, _, err = barnabas("transactions", "find-hanging", "--topic", "nowhere")
    assert (code, "topic 'nowhere' does not exist" in err) == (1, True)
    code, _, err = barnabas("transactions", "find-hanging", "--max-transaction-timeout", "soon")
    assert code == 2
    assert "--max-transaction-timeout" in err

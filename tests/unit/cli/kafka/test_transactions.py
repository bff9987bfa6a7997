"""`kafka-transactions`: its tables, and aborting what hangs."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
from tests.unit.broker.serving import Wire, create_topic, wait_for
from tests.unit.cli.kafka.tool_runs import RunTool, runner

from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    # Without verification a transaction can be begun that its coordinator never hears of.
    options = {**COORDINATED, "transaction.partition.verification.enable": "false"}
    with Cluster(options=options) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def transactions(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-transactions.sh", bootstrap, capsys)


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    host, _, port = bootstrap.partition(":")
    with Wire((host, int(port))) as connection:
        find(connection, "any", TRANSACTION)
        yield connection


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("\t")[:-1]] for line in text.splitlines()]


def test_transactions_are_listed_and_described(transactions: RunTool, wire: Wire) -> None:
    create_topic(wire, "t")
    producer = init(wire, "pay")
    assert enlist(wire, "pay", producer, "t", 0) == [0]
    run = transactions("list")
    assert (run.code, run.err) == (0, "")
    head, row = run.out.splitlines()
    assert head == "TransactionalId\tCoordinator\tProducerId\tTransactionState\t"
    assert row == f"{'pay':<15}\t{0:<11}\t{producer[0]:<10}\t{'Ongoing':<16}\t"
    assert rows(transactions("list", "--duration-filter", "3600000").out)[1:] == []
    assert rows(transactions("list", "--transactional-id-pattern", "x.*").out)[1:] == []
    head, row = rows(transactions("describe", "--transactional-id", "pay").out)
    assert head[-3:] == [
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    ]
    assert row[:6] == ["0", "pay", *map(str, producer), "Ongoing", "60000"]
    assert row[-1] == "t-0"
    assert int(row[-2]) >= 0
    assert end(wire, "pay", producer) == 0
    wait_for_state(wire, "pay", "CompleteCommit")
    run = transactions("describe", "--transactional-id", "never-was")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(
        "Failed to describe transaction state of transactional-id `never-was`: "
    )


def test_a_hanging_transaction_is_found_and_aborted(transactions: RunTool, wire: Wire) -> None:
    create_topic(wire, "stuck")
    ghost = (987_654, 3)
    assert produce(wire, "ghost", ghost, "stuck", "first") == 0
    where = ("--topic", "stuck", "--partition", "0")
    head, row = rows(transactions("find-hanging", "--topic", "stuck").out)
    assert head[0:4] == ["Topic", "Partition", "ProducerId", "ProducerEpoch"]
    assert row[:6] == ["stuck", "0", "987654", "3", "-1", "0"]
    assert int(row[7]) > 60
    assert rows(transactions("find-hanging", "--broker-id", "0", *where).out)[1:] == [row]
    assert rows(transactions("find-hanging", "--broker-id", "7").out)[1:] == []
    [found] = rows(transactions("describe-producers", *where).out)[1:]
    assert found[:4] == ["987654", "3", "-1", "0"]
    assert found[5] == "0"
    run = transactions("abort", *where, "--start-offset", "5")
    assert run.code == 1
    assert "Could not find any open transactions starting at offset 5 on partition stuc" in run.err
    run = transactions("abort", *where, "--start-offset", "0")
    assert run == (0, "", "")
    assert stable_offset(wire, "stuck") == 2
    [found] = rows(transactions("describe-producers", *where).out)[1:]
    assert found[5] == "None"


def test_an_older_broker_is_told_all(transactions: RunTool, wire: Wire) -> None:
    create_topic(wire, "older")
    assert produce(wire, "ghost", (987_655, 1), "older", "first") == 0
    words = ("--topic", "older", "--partition", "0", "--producer-id", "987655")
    run = transactions("abort", *words, "--producer-epoch", "1")
    assert "Missing required argument --coordinator-epoch" in run.err
    run = transactions("abort", *words, "--producer-epoch", "1", "--coordinator-epoch", "-1")
    assert run == (0, "", "")
    assert stable_offset(wire, "older") == 2


def test_a_transaction_is_terminated(transactions: RunTool, wire: Wire) -> None:
    create_topic(wire, "ended")
    producer = init(wire, "late")
    assert enlist(wire, "late", producer, "ended", 0) == [0]
    assert produce(wire, "late", producer, "ended", "first") == 0
    run = transactions("forceTerminateTransaction", "--transactionalId", "late")
    assert run == (0, "", "")
    wait_for(lambda: stable_offset(wire, "ended") == 2, "the transaction is aborted")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "too few arguments: expected one of list, describe"),
        (["sing"], "invalid choice: 'sing' (choose from 'list', 'describe'"),
        (["describe"], 'Missing required argument "[transactional-id]"'),
        (["describe-producers", "--topic", "t"], 'Missing required argument "[partition]"'),
        (["describe-producers", "--topic", "t", "--partition", "x"], "Cannot parse argument 'x'"),
        (["abort", "--topic", "t", "--partition", "0"], "must be identified either with --start"),
        (["find-hanging"], "requires either --topic or --broker-id"),
        (["find-hanging", "--broker-id", "0", "--partition", "0"], "requires --topic to be prov"),
        (["list", "--broker-id", "0"], "broker-id is not a recognized option"),
        (["find-hanging", "--topic", "none-such"], "none-such"),
    ],
)
def test_misuse(transactions: RunTool, words: list[str], text: str) -> None:
    run = transactions(*words)
    assert run.code == 1
    assert text in run.err
    assert run.out == ""


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    bare = runner("kafka-transactions", None, capsys)
    assert "find-hanging" in bare("--help").out
    assert "--duration-filter MS" in bare("list", "-h").out
    for words in (["--version"], ["-v"], ["list", "-v"]):
        run = bare(*words)
        assert run.code == 0
        assert re.match(r"\d+\.\d+", run.out)
    assert 'Missing required argument "[bootstrap-server]"' in bare("list").err

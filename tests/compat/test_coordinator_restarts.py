"""Brokers that stop or die with open transactions and groups, and money that must not get lost.

`BARNABAS_TRANSFER_SECONDS` makes the transfers last longer than the suite allows.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.compat.conftest import QUICK
from tests.compat.samples import until_deadline
from tests.compat.test_groups_confluent_kafka import Crowd
from tests.compat.test_groups_confluent_kafka import create as create_places
from tests.compat.test_groups_confluent_kafka import produce as produce_to
from tests.compat.test_transactions_confluent_kafka import (
    committed_values,
    create,
    end_of,
    transactional,
)
from tools.processes import RunningBroker, free_port, start_barnabas

pytestmark = [pytest.mark.compat, pytest.mark.system]

TRANSFER_SECONDS = float(os.environ.get("BARNABAS_TRANSFER_SECONDS", "8"))
ACCOUNTS = 10
START_BALANCE = 100


class Restartable:
    """A broker that begins again on the same port and data."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.running: RunningBroker | None = None
        self.start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.running = start_barnabas(self.data_dir, port=self.port, options=QUICK)

    def end(self, how: str) -> None:
        assert self.running is not None
        if how == "clean":
            assert self.running.stop() == 0
        else:
            self.running.process.send_signal(signal.SIGKILL)
            self.running.process.wait()


@pytest.mark.parametrize("how", ["clean", "SIGKILL"])
def test_members_rejoin_and_lose_no_offsets(tmp_path: Path, name: str, how: str) -> None:
    broker = Restartable(tmp_path / "data")
    crowd = Crowd(broker.bootstrap, f"group-of-{name}")
    try:
        wanted = create_places(broker.bootstrap, name, 4)
        produce_to(broker.bootstrap, wanted, 10)
        crowd.join([name], 2)
        crowd.settle(wanted, "two members share")
        crowd.read(wanted, 10, "all records are processed")
        broker.end(how)
        broker.start()
        produce_to(broker.bootstrap, wanted, 10)
        crowd.read(wanted, 20, "what came after the restart is processed, from where they were")
        crowd.settle(wanted, "both have their share")
        crowd.close()
        crowd.ledger.check()
    finally:
        broker.end("SIGKILL")


@pytest.mark.parametrize("how", ["clean", "SIGKILL"])
def test_transactions_go_on_after_a_restart(tmp_path: Path, name: str, how: str) -> None:
    """An open one is ended by its heir, a committed one is there, and all becomes stable."""
    broker = Restartable(tmp_path / "data")
    try:
        create(broker.bootstrap, name)
        done = transactional(broker.bootstrap, f"{name}.done")
        done.begin_transaction()
        done.produce(name, value=b"committed")
        done.commit_transaction(30)
        left = transactional(broker.bootstrap, f"{name}.left")
        left.begin_transaction()
        left.produce(name, value=b"left open")
        assert left.flush(30) == 0
        goes_on = transactional(broker.bootstrap, f"{name}.goes-on")
        goes_on.begin_transaction()
        goes_on.produce(name, value=b"before")
        assert goes_on.flush(30) == 0
        broker.end(how)
        broker.start()
        goes_on.produce(name, value=b"after")
        goes_on.commit_transaction(60)
        assert end_of(broker.bootstrap, name, committed=True) < end_of(
            broker.bootstrap, name, committed=False
        )
        heir = transactional(broker.bootstrap, f"{name}.left")
        heir.begin_transaction()
        heir.produce(name, value=b"of the heir")
        heir.commit_transaction(30)
        expected = [b"committed", b"before", b"after", b"of the heir"]
        for _ in until_deadline("the last stable offset reaches the end"):
            stable = end_of(broker.bootstrap, name, committed=True)
            if stable == end_of(broker.bootstrap, name, committed=False):
                break
        assert committed_values(broker.bootstrap, name) == expected
    finally:
        broker.end("SIGKILL")


TRANSFERS = textwrap.dedent(
    """
    import random, sys, uuid
    from confluent_kafka import Producer
    bootstrap, topic, txn_id, seed, accounts = sys.argv[1:]
    dice = random.Random(seed)
    producer = Producer({
        "bootstrap.servers": bootstrap, "transactional.id": txn_id, "linger.ms": 0,
        "log_level": 0,
    })
    producer.init_transactions(30)
    while True:
        giver, taker = dice.sample(range(int(accounts)), 2)
        amount = dice.randint(1, 50)
        transfer = uuid.uuid4().hex
        producer.begin_transaction()
        producer.produce(topic, partition=giver, key=transfer, value=str(-amount).encode())
        producer.produce(topic, partition=taker, key=transfer, value=str(amount).encode())
        if dice.random() < 0.2:
            producer.flush(30)
            producer.abort_transaction(30)
            print("aborted", transfer, flush=True)
        else:
            producer.commit_transaction(30)
            print("committed", transfer, flush=True)
    """
)


class Auditor(threading.Thread):
    """Reads every account with read_committed while money moves, and keeps the books.

    Accounts are partitions, and the marker of a transfer reaches one before the other. So a view
    of all accounts counts the transfers that both sides show; that a transfer shows one side only
    must pass.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.sides: dict[str, list[int]] = defaultdict(list)
        self.money = 0
        """The sum of all accounts, by the transfers that are seen as a whole."""
        self.views: list[int] = []
        self.over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(ACCOUNTS)])

    def run(self) -> None:
        ended: set[int] = set()
        while not (self.over.is_set() and len(ended) == ACCOUNTS):
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                ended.discard(message.partition())
                self._note(message.key().decode(), int(message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            self.views.append(self.money)
        self._consumer.close()

    def _note(self, transfer: str, amount: int) -> None:
        sides = self.sides[transfer]
        sides.append(amount)
        if transfer == "opening":
            self.money += amount
        elif len(sides) == 2:
            self.money += sum(sides)


def test_money_is_neither_made_nor_lost(quick_bootstrap: str, name: str) -> None:
    """Producers move money between accounts and are killed at random, whatever they do."""
    dice = random.Random(20261115)
    create(quick_bootstrap, name, ACCOUNTS)
    opening = transactional(quick_bootstrap, f"{name}.opening")
    opening.begin_transaction()
    for account in range(ACCOUNTS):
        opening.produce(name, partition=account, key="opening", value=str(START_BALANCE).encode())
    opening.commit_transaction(30)
    auditor = Auditor(quick_bootstrap, name)
    auditor.start()

    def spawn(number: int) -> subprocess.Popen[str]:
        words = [f"{name}.{number}", str(dice.random()), str(ACCOUNTS)]
        return subprocess.Popen(
            [sys.executable, "-c", TRANSFERS, quick_bootstrap, name, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    told: dict[str, str] = {}
    tellers = [spawn(number) for number in range(2)]
    end = time.monotonic() + TRANSFER_SECONDS
    kills = 0
    try:
        while time.monotonic() < end:
            number = dice.randrange(len(tellers))
            output = tellers[number].stdout
            assert output is not None
            for _ in range(dice.randint(1, 15)):
                line = output.readline()
                assert line, f"a producer ended by itself, with {tellers[number].wait()}"
                outcome, transfer = line.split()
                told[transfer] = outcome
            kills += 1
            kill(tellers[number], told)
            tellers[number] = spawn(number)
    finally:
        for teller in tellers:
            kill(teller, told)
    for number in range(len(tellers)):  # the heirs end what was left open
        transactional(quick_bootstrap, f"{name}.{number}")
    for account in range(ACCOUNTS):
        for _ in until_deadline("every account is stable"):
            stable = end_of(quick_bootstrap, name, committed=True, partition=account)
            if stable == end_of(quick_bootstrap, name, committed=False, partition=account):
                break
    auditor.over.set()
    auditor.join(60)
    assert not auditor.is_alive()

    everything = ACCOUNTS * START_BALANCE
    opened = auditor.sides.pop("opening")
    assert opened == [START_BALANCE] * ACCOUNTS
    assert set(auditor.views[auditor.views.index(everything) :]) == {everything}
    for transfer, sides in auditor.sides.items():
        assert len(sides) == 2, f"{transfer} shows {sides}"
        assert sum(sides) == 0, f"{transfer} shows {sides}"
    committed = {transfer for transfer, outcome in told.items() if outcome == "committed"}
    assert committed <= set(auditor.sides)
    assert not (set(told) - committed) & set(auditor.sides)
    assert committed
    assert kills > 0


def kill(teller: subprocess.Popen[str], told: dict[str, str]) -> None:
    """End a producer wherever it is, and take note of what it still had to tell."""
    teller.kill()
    rest, _ = teller.communicate()
    for line in rest.splitlines():
        words = line.split()
        if len(words) == 2 and len(words[1]) == 32:
            told[words[1]] = words[0]

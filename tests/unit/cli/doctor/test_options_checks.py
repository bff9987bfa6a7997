"""Options: each contradiction is found by itself, and none where there is none."""

from __future__ import annotations

import pytest

from barnabas.cli.doctor.finding import Severity
from barnabas.cli.doctor.options_checks import BrokerOptionsView, option_checks, unequal

WELL = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
    "message.max.bytes": "1048588",
    "socket.request.max.bytes": "104857600",
    "transaction.max.timeout.ms": "900000",
    "transactional.id.expiration.ms": "604800000",
    "replica.fetch.wait.max.ms": "500",
    "replica.lag.time.max.ms": "30000",
    "unclean.leader.election.enable": "false",
    "controlled.shutdown.enable": "true",
    "log.retention.bytes": "-1",
    "log.segment.bytes": "1073741824",
    "log.dirs": "/var/lib/barnabas",
    "listeners": "PLAINTEXT://:9092",
    "advertised.listeners": "PLAINTEXT://broker-1:9092",
    "allow.everyone.if.no.acl.found": "false",
}


def view(changes: dict[str, str], *, is_barnabas: bool = True) -> BrokerOptionsView:
    return BrokerOptionsView("broker 1", WELL | changes, set(changes), is_barnabas)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min.insync.replicas": "4"}, "new topics reject acks=all"),
        ({"transaction.state.log.min.isr": "4"}, "transactions cannot begin"),
        ({"message.max.bytes": "104857601"}, "cannot be sent"),
        ({"transaction.max.timeout.ms": "604800001"}, "may expire"),
        ({"replica.fetch.wait.max.ms": "30001"}, "leave the ISR"),
        ({"default.replication.factor": "5"}, "there are 3 brokers"),
    ],
)
def test_what_fails_is_red(changes: dict[str, str], words: str) -> None:
    [check] = option_checks(view(changes), brokers=3)
    finding = check.judge()
    assert finding.severity is Severity.RED
    assert words in finding.text
    assert finding.step


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min.insync.replicas": "3"}, "no broker can restart"),
        ({"unclean.leader.election.enable": "true"}, "may be lost"),
        ({"log.retention.bytes": "1000"}, "grows beyond"),
        ({"controlled.shutdown.enable": "false"}, "without a leader"),
        ({"log.dirs": "/data, /tmp/kafka-logs"}, "/tmp/kafka-logs: the system empties"),
        ({"super.users": "User:admin"}, "no authorizer"),
        (
            {"authorizer.class.name": "A", "allow.everyone.if.no.acl.found": "true"},
            "open to everyone",
        ),
        ({"advertised.listeners": "PLAINTEXT://localhost:9092"}, "sent to themselves"),
        ({"log.retention.ms": "1", "log.retention.hours": "2"}, "log.retention.hours does nothing"),
        ({"num.network.threads": "8"}, "num.network.threads=8 does nothing"),
    ],
)
def test_what_may_fail_is_amber(changes: dict[str, str], words: str) -> None:
    [check] = option_checks(view(changes), brokers=3)
    finding = check.judge()
    assert finding.severity is Severity.AMBER
    assert words in finding.text
    assert finding.step


def test_sound_options_are_green() -> None:
    [check] = option_checks(view({}), brokers=3)
    assert check.judge().severity is Severity.GREEN


def test_what_does_nothing_here_may_act_on_apache_kafka() -> None:
    [check] = option_checks(view({"num.network.threads": "8"}, is_barnabas=False), brokers=3)
    assert check.judge().severity is Severity.GREEN


def test_a_listener_of_this_machine_alone_may_say_so() -> None:
    local = {"listeners": "PLAINTEXT://localhost:9092"}
    local["advertised.listeners"] = local["listeners"]
    [check] = option_checks(view(local), brokers=3)
    assert check.judge().severity is Severity.GREEN


def test_brokers_that_differ_are_named() -> None:
    views = [
        BrokerOptionsView(f"broker {number}", WELL | {"message.max.bytes": size}, set(), True)
        for number, size in enumerate(("10", "20", "10"))
    ]
    [check] = unequal(views)
    assert check.judge().text == (
        "message.max.bytes differs: 10 (broker 0, broker 2), 20 (broker 1)"
    )
    assert not list(unequal(views[:1]))

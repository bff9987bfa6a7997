"""The way to a broker: each check is green for what is well, and each fault turns it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.cli.doctor.judged import Case, assert_judged

from barnabas.cli.doctor.connecting import (
    Advertised,
    Clock,
    ClusterView,
    Login,
    Reach,
    Resolution,
    RoundTrip,
    Tls,
    Versions,
    is_loopback,
)
from barnabas.cli.doctor.finding import NotChecked, Severity

GREEN, AMBER, RED = Severity.GREEN, Severity.AMBER, Severity.RED

NAME = Resolution("broker-1", ("10.0.0.1", "fd00::1"), 3.0)
WAY = Reach("broker-1:9092", {"10.0.0.1": 0.4})
TLS = Tls("broker-1:9092", "TLSv1.3", 90.0)
VERSIONS = Versions("broker-1:9092", 57, (), 1.0)
LOGIN = Login("broker-1:9092", "SCRAM-SHA-512")
VIEW = ClusterView("broker-1:9092", "abc", 3, 1)
SENT = Advertised(1, "broker-1:9092", False, 1.0, None, "abc", "abc")
CLOCK = Clock(1, 20.0, 5.0)
RECORD = RoundTrip(1, "orders-0", 3.0, 4.0, True)

CASES: dict[str, Case] = {
    "a name": (NAME, GREEN, "10.0.0.1, fd00::1"),
    "a slow name": (replace(NAME, elapsed_ms=1001.0), AMBER, "DNS"),
    "no such name": (Resolution("x", (), 3.0, "name or service not known"), RED, "not known"),
    "no address": (replace(NAME, addresses=()), RED, "no address"),
    "reached": (WAY, GREEN, "0.4 ms"),
    "slowly reached": (Reach("b:1", {"10.0.0.1": 1500.0}), AMBER, "network"),
    "one of two": (
        Reach("b:1", {"fd00::1": "connection refused", "10.0.0.1": 1.0}),
        AMBER,
        "fd00::1 (connection refused)",
    ),
    "refused": (Reach("b:1", {"10.0.0.1": "connection refused"}), RED, "barnabas start"),
    "silent": (Reach("b:1", {"10.0.0.1": "no response in time"}), RED, "firewall"),
    "nowhere": (Reach("b:1", {}), RED, "no address"),
    "encrypted": (TLS, GREEN, "90 days"),
    "soon expired": (replace(TLS, expires_in_days=29.0), AMBER, "renew"),
    "another name allowed": (replace(TLS, checks_name=False), AMBER, "identification"),
    "unverified": (replace(TLS, expires_in_days=None), AMBER, "any certificate"),
    "wrong name": (Tls("b:1", failure="its certificate is rejected", step="x"), RED, "rejected"),
    "no handshake": (Tls("b:1"), RED, "security.protocol"),
    "understood": (VERSIONS, GREEN, "57 APIs"),
    "too old": (replace(VERSIONS, lacking=("Fetch",)), RED, "Fetch"),
    "not a broker": (Versions("b:1", failure="connection lost"), RED, "Kafka broker"),
    "logged in": (LOGIN, GREEN, "accepted"),
    "for a while": (replace(LOGIN, session_ms=60_000.0), GREEN, "within 60.0 s"),
    "wrong password": (replace(LOGIN, failure="rejected"), RED, "sasl.jaas.config"),
    "a cluster": (VIEW, GREEN, "3 brokers, controller 1"),
    "no controller": (replace(VIEW, controller_id=None), RED, "without a controller"),
    "no broker": (replace(VIEW, brokers=0), RED, "no broker"),
    "silent cluster": (ClusterView("b:1", failure="connection lost"), RED, "log"),
    "sent there": (SENT, GREEN, "broker-1:9092 (1.0 ms)"),
    "sent nowhere": (replace(SENT, failure="refused"), RED, "advertised.listeners"),
    "sent home": (replace(SENT, address="localhost:9092"), RED, "their own machine"),
    "sent elsewhere": (replace(SENT, cluster_id="other"), RED, "another cluster (other)"),
    "sent to one for two": (replace(SENT, shared_with=(2, 3)), RED, "broker 2, 3"),
    "clocks agree": (CLOCK, GREEN, "within"),
    "cannot tell": (Clock(1, 1500.0, 900.0), GREEN, "within"),
    "late": (Clock(1, -1500.0, 10.0), AMBER, "behind"),
    "early": (Clock(1, 61_000.0, 10.0), RED, "ahead"),
    "came back": (RECORD, GREEN, "read in 4 ms"),
    "slow": (replace(RECORD, sent_ms=1500.0), AMBER, "disk"),
    "slowly read": (replace(RECORD, read_ms=1500.0), AMBER, "disk"),
    "other bytes": (replace(RECORD, came_back=False), RED, "not what was sent"),
    "not sent": (replace(RECORD, failure="NOT_ENOUGH_REPLICAS"), RED, "why partition orders-0"),
    "may not": (
        NotChecked("record", "", "not allowed", "--topic TOPIC"),
        AMBER,
        "not checked: not allowed",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_facts_are_judged(name: str) -> None:
    assert_judged(CASES[name])


def test_one_who_dials_itself_may_be_sent_home() -> None:
    home = replace(SENT, address="127.0.0.1:9092", bootstrap_is_local=True)
    assert home.judge().severity is GREEN
    assert is_loopback("::1")
    assert not is_loopback("10.127.0.1")

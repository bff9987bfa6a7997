"""The diary of a broker in a process: a consumer is killed, the broker restarts, both are known."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tools.processes import start_barnabas

from barnabas import KafkaAdminClient
from barnabas.cli.main import main

pytestmark = pytest.mark.system

OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "1",
}
MEMBER = """
import sys
from barnabas import KafkaConsumer
with KafkaConsumer(
    "orders",
    bootstrap_servers=sys.argv[1],
    group_id="billing",
    session_timeout_ms=1000,
    heartbeat_interval_ms=200,
) as consumer:
    while True:
        consumer.poll(timeout_ms=50)
"""
DEADLINE_S = 60.0


def test_it_survives_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def why(*words: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert main(["why", *words, "--json"]) == 0
        entries: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["entries"]
        return entries

    def expect(event: str, cause: str) -> dict[str, Any]:
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            for entry in why("group", "billing"):
                if (entry["event"], entry["cause"]) == (event, cause):
                    return entry
            assert time.monotonic() < deadline_s, f"no {event} by {cause}"
            time.sleep(0.1)

    broker = start_barnabas(tmp_path / "data", options=OPTIONS)
    try:
        monkeypatch.setenv("BARNABAS_BOOTSTRAP", broker.bootstrap)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 1}})
        member = subprocess.Popen([sys.executable, "-c", MEMBER, broker.bootstrap])
        try:
            joined = expect("group.stable", "member-joined")
            assert joined["data"]["after"] == 1
        finally:
            member.kill()
            member.wait(60)
        began = expect("group.rebalance", "session-timeout")
        assert began["data"]["silent_ms"] >= began["data"]["timeout_ms"] == 1_000
        emptied = expect("group.empty", "session-timeout")
        assert emptied["data"]["timed_out"] == [began["data"]["member"]]
        before = why("group", "billing")
        assert broker.stop() == 0
        broker = start_barnabas(tmp_path / "data", options=OPTIONS)
        monkeypatch.setenv("BARNABAS_BOOTSTRAP", broker.bootstrap)
        assert [e for e in why("group", "billing") if e in before] == before
    finally:
        broker.stop()

"""What a broker that does nothing has in memory: only what its listeners use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.security.sasl.bearer import issuer, jwks

from barnabas.testing.process import ProcessRunner

pytestmark = pytest.mark.system

IDLE_BYTES_MAX = 50_000_000
"""Without compiled bytecode a start costs some megabytes more than README says."""

# `ssl` itself is imported by asyncio.
HEAVY = {
    "cryptography",
    "email",
    "gssapi",
    "http.client",
    "jwt",
    "scramp",
    "urllib.request",
    "barnabas.broker.network.authentication",
    "barnabas.broker.network.listener_tls",
    "barnabas.security.sasl.mechanisms",
    "barnabas.tls.context",
}
PROGRAM = """
import asyncio, json, sys
from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions

async def run(options):
    broker = Broker(BrokerOptions.parse(options))
    await broker.start()
    print(*sys.modules)
    await broker.stop()

asyncio.run(run(json.loads(sys.stdin.read())))
"""


def imported(directory: Path, options: dict[str, str]) -> set[str]:
    """Return the modules that a broker has imported when it is ready."""
    given = {"log.dirs": str(directory), "offsets.topic.replication.factor": "1", **options}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(done.stdout.split())


def test_a_broker_without_security_has_none_of_it_in_memory(tmp_path: Path) -> None:
    modules = imported(tmp_path, {"listeners": "PLAINTEXT://127.0.0.1:0"})
    assert "barnabas.broker.network.sasl" in modules
    assert modules & HEAVY == set()


def test_a_secured_listener_brings_what_it_uses(tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_bytes(jwks(issuer()))
    modules = imported(
        tmp_path / "data",
        {
            "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
            "inter.broker.listener.name": "OPEN",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        },
    )
    assert {"jwt", "cryptography", "barnabas.security.sasl.mechanisms"} <= modules


def test_an_idle_broker_is_small(tmp_path: Path) -> None:
    runner = ProcessRunner()
    runner.start(
        {"broker.id": "0", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    )
    try:
        assert runner._process is not None
        status = Path(f"/proc/{runner._process.pid}/status").read_text()
    finally:
        runner.stop()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    assert int(match[1]) * 1024 < IDLE_BYTES_MAX

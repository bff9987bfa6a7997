"""`barnabas perf` with clients that we did not write, side by side with ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.cli.main import main

pytestmark = pytest.mark.compat

CLIENTS = ["barnabas", "confluent-kafka", "aiokafka", "kafka-python"]
RECORDS = 300


def measured(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    """Return what each client did, by its name."""
    code = main(["perf", *words, "--client", ",".join(CLIENTS), "--json"])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    found = {each["client"]: each for each in json.loads(said.out)}
    assert list(found) == CLIENTS
    assert all(each["version"] for each in found.values())
    return found


def test_each_client_produces_consumes_and_goes_there_and_back(
    quick_bootstrap: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ("--bootstrap-server", quick_bootstrap)
    assert main(["topics", "create", name, "--partitions", "2", *bootstrap]) == 0
    capsys.readouterr()

    records = ("--records", str(RECORDS), *bootstrap)
    transactions = ("--transaction-duration", "0.05", "--throughput", "1500")
    for each in measured(capsys, "produce", name, *records, *transactions).values():
        assert (each["records"], each["bytes"], each["failures"]) == (RECORDS, RECORDS * 100, 0)
        # Later than this, whatever the machine does, and sooner than a client that is not polled.
        assert 0 < each["latency_ms"]["p50"] < 60_000

    idle = ("--idle", "0.5", "--client-option", "isolation.level=read_committed", *bootstrap)
    for words in ((), ("--group", f"{name}-group")):
        for each in measured(capsys, "consume", name, *words, *idle).values():
            assert each["records"] == RECORDS * len(CLIENTS)
            assert each["bytes"] == RECORDS * len(CLIENTS) * 100

    for each in measured(capsys, "latency", name, "--records", "20", *bootstrap).values():
        assert (each["records"], each["bytes"]) == (20, 2000)

"""`barnabas perf` on Apache Kafka: with our client and another, as on our own broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.cli.main import main

pytestmark = pytest.mark.interop

RECORDS = 500
CLIENTS = ["barnabas", "confluent-kafka"]


def test_records_go_to_apache_kafka_and_back(
    apache_bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ("--bootstrap-server", apache_bootstrap)
    assert main(["topics", "create", "measured", "--partitions", "2", *bootstrap]) == 0
    capsys.readouterr()

    def measured(*words: str) -> list[dict[str, Any]]:
        code = main(["perf", *words, *bootstrap, "--client", ",".join(CLIENTS), "--json"])
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
        found: list[dict[str, Any]] = json.loads(said.out)
        assert [each["client"] for each in found] == CLIENTS
        return found

    count = ("--records", str(RECORDS))
    for each in measured("produce", "measured", *count, "--transaction-duration", "0.1"):
        assert (each["records"], each["failures"]) == (RECORDS, 0)
    read = ("consume", "measured", "--idle", "1")
    committed = ("--client-option", "isolation.level=read_committed")
    for words in ((), ("--group", "measuring"), ("--clients", "2")):
        for each in measured(*read, *committed, *words):
            assert each["records"] == RECORDS * len(CLIENTS)
    for each in measured("latency", "measured", "--records", "30"):
        assert (each["records"], each["bytes"]) == (30, 3000)

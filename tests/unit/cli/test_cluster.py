"""`barnabas cluster` against a real broker."""

from __future__ import annotations

import json
from typing import Any


def test_brokers_and_controller_are_shown(barnabas: Any, barnabas_bootstrap: str) -> None:
    port = barnabas_bootstrap.rpartition(":")[2]
    run = barnabas("cluster", "describe")
    assert (run.code, run.err) == (0, "")
    title, header, line, counted, _ = run.out.splitlines()
    assert title.startswith("cluster ")
    assert header.split()[:5] == ["broker", "host", "port", "rack", "role"]
    assert header.split()[5:] == ["leads", "replicas", "imbalance"]
    assert line.split()[:5] == ["0", "127.0.0.1", port, "-", "controller"]
    assert counted.split()[:4] == ["topics", "partitions", "replicas", "under-replicated"]


def test_machines_get_apis_with_names_and_ranges(barnabas: Any) -> None:
    document = json.loads(barnabas("cluster", "describe", "--apis", "--json").out)
    assert document["controller_id"] == 0
    assert len(document["cluster_id"]) == 22
    [broker] = document["brokers"]
    apis = {entry["name"]: entry for entry in broker["apis"]}
    assert apis["ApiVersions"] == {"key": 18, "name": "ApiVersions", "min": 0, "max": 4}
    assert apis["Produce"]["min"] == 0


def test_people_get_a_table_of_apis(barnabas: Any) -> None:
    lines = barnabas("cluster", "describe", "--apis").out.splitlines()
    assert "APIs of broker 0" in lines
    assert ["18", "ApiVersions", "0-4"] in [line.split() for line in lines]

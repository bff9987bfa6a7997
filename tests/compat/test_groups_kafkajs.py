"""Consumer groups and transactions with kafkajs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.compat.samples import DEPS, until_deadline
from tests.compat.test_transactions_confluent_kafka import committed_values

PACKAGES = DEPS / "kafkajs" / "node_modules"
CLIENT = Path(__file__).parent / "kafkajs" / "client.js"

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="kafkajs is not there (make deps fetches it)"),
]

Act = Callable[..., Any]


@pytest.fixture
def act(quick_bootstrap: str) -> Act:
    """Do one act in a child process and return its answer."""

    def run(name: str, **arguments: Any) -> Any:
        done = subprocess.run(
            ["node", str(CLIENT), quick_bootstrap, name],
            input=json.dumps(arguments),
            env={**os.environ, "NODE_PATH": str(PACKAGES)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("members", [1, 2, 7])
def test_members_share_a_topic_and_commit(act: Act, name: str, members: int) -> None:
    group = f"group-of-{name}"
    act("create", topic=name, partitions=8)
    values = [{"partition": number % 8, "value": str(number)} for number in range(80)]
    act("send", topic=name, messages=values)
    answer = act("group", topic=name, groupId=group, members=members, count=80)
    everything = {(partition, offset) for partition in range(8) for offset in range(10)}
    assert {tuple(each) for each in answer["seen"]} == everything
    owned = [partition for share in answer["owned"] for partition in share]
    assert sorted(owned) == list(range(8))
    committed = {each["partition"]: each["offset"] for each in answer["offsets"]}
    assert committed == dict.fromkeys(range(8), "10")
    # The next life of the group begins where this one ended.
    act("send", topic=name, messages=[{"partition": 0, "value": "late"}])
    again = act("group", topic=name, groupId=group, members=1, count=1)
    assert again["seen"] == [[0, 10]]


def test_transactions_commit_and_abort(act: Act, quick_bootstrap: str, name: str) -> None:
    act("create", topic=name)
    steps = [
        {"values": ["a", "b"], "commits": True},
        {"values": ["c"], "commits": False},
        {"values": ["d"], "commits": True},
    ]
    act("transactions", topic=name, transactionalId=name, steps=steps)
    for _ in until_deadline("the last marker is written"):
        if committed_values(quick_bootstrap, name) == [b"a", b"b", b"d"]:
            break

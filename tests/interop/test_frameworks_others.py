"""Clients of other languages that copy a topic, one of their processes killed."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.interop.conftest import Compatibility
from tests.interop.framework_runs import (
    TOTAL,
    Program,
    assert_counted_at_least_once,
    create_topics,
    fetched,
    run_and_kill,
)
from tools.frameworks import NODE_PACKAGES, SOURCES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

MODULES = {
    "franz-go": "github.com/twmb/franz-go",
    "sarama": "github.com/IBM/sarama",
    "kafka-go": "github.com/segmentio/kafka-go",
}


@pytest.fixture
def topics(bootstrap: str, name: str) -> tuple[str, str]:
    """A topic to read and one to write."""
    create_topics(bootstrap, f"{name}.in", f"{name}.out")
    return f"{name}.in", f"{name}.out"


def go_version(library: str) -> str:
    """Return the version that go.mod names."""
    module = (SOURCES / "go" / "go.mod").read_text()
    found = re.search(rf"{re.escape(MODULES[library])} v(\S+)", module)
    assert found is not None
    return found[1]


def run_go(library: str, bootstrap: str, topics: tuple[str, str], tmp_path: Path) -> Counter:
    """Copy with a client of Go, and return how often each id was copied."""
    client = fetched("go") / "client"

    def start(life: str) -> Program:
        command = [client, library, bootstrap, library, f"{library}-id", *topics]
        return Program(command, tmp_path / f"{life}.log")

    reader = run_and_kill(bootstrap, *topics, start)
    assert_counted_at_least_once(reader)
    return reader.ids


@pytest.mark.parametrize("library", ["franz-go", "sarama"])
def test_go_in_transactions(
    library: str,
    bootstrap: str,
    topics: tuple[str, str],
    tmp_path: Path,
    compatibility: Compatibility,
) -> None:
    """Copy a topic in transactions, with the offsets of a group; a process killed: every record
    copied once.
    """
    compatibility(library, go_version(library), "Go")
    assert run_go(library, bootstrap, topics, tmp_path) == Counter(range(TOTAL))


def test_go_without_transactions(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Copy a topic as a group and commit what is written; a process killed: every record copied,
    and repeated only the one that was not committed of each partition.
    """
    compatibility("segmentio/kafka-go", go_version("kafka-go"), "Go")
    ids = run_go("kafka-go", bootstrap, topics, tmp_path)
    assert ids.total() <= TOTAL + 4


def test_platformatic_kafka(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Copy a topic in transactions, with the offsets of a group; a process killed: every record
    copied once.
    """
    compatibility("@platformatic/kafka", NODE_PACKAGES[0].rpartition("@")[2], "JavaScript")
    packages = fetched("node") / "node_modules"

    def start(life: str) -> Program:
        node = shutil.which("node")
        assert node is not None
        script = SOURCES / "node" / "platformatic.mjs"
        command = [node, script, bootstrap, "platformatic", "platformatic-id", *topics]
        return Program(command, tmp_path / f"{life}.log", {"NODE_PATH": str(packages)})

    assert run_and_kill(bootstrap, *topics, start).ids == Counter(range(TOTAL))


def test_rskafka(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Copy each partition, from where the copy ends, with three codecs; the process killed: every
    record copied once.
    """
    compatibility("rskafka", "0.6.0", "Rust")
    copier = fetched("rust") / "target" / "release" / "copier"

    def start(life: str) -> Program:
        return Program([copier, bootstrap, *topics], tmp_path / f"{life}.log")

    assert run_and_kill(bootstrap, *topics, start).ids == Counter(range(TOTAL))

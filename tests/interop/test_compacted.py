"""The Java consumer reads a compacted topic, while it is compacted and afterwards."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.compat.compacting import END, OPTIONS, Filling, Read
from tools.apache_kafka import Distribution
from tools.processes import RunningBroker, start_barnabas

pytestmark = pytest.mark.interop

LINE = re.compile(r"Offset:(\d+)\|([^|]*)\|(.*)")
DEADLINE_S = 120
ISOLATIONS = ("read_uncommitted", "read_committed")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker that compacts all the time."""
    running = start_barnabas(tmp_path_factory.mktemp("compacted") / "data", options=OPTIONS)
    yield running
    running.stop()


def read(kafka: Distribution, bootstrap: str, topic: str, isolation: str) -> list[Read]:
    """Read by assignment until the record that is the last, however long its writer takes."""
    shown = ["print.key=true", "key.separator=|", "print.offset=true"]
    command = kafka.command(
        "kafka-console-consumer",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--partition=0",
        "--offset=earliest",
        f"--isolation-level={isolation}",
        f"--timeout-ms={DEADLINE_S * 1000}",
        *[f"--property={one}" for one in shown],
    )
    found: list[Read] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if match := LINE.fullmatch(line.rstrip("\n")):
                found.append(Read(int(match[1]), match[2].encode(), match[3].encode()))
                if found[-1].key == END:
                    break
        process.kill()
    return found


def test_a_compacted_topic_is_read(kafka: Distribution, broker: RunningBroker) -> None:
    filling = Filling(broker.bootstrap, f"compacted-{kafka.release}")
    with ThreadPoolExecutor(2) as threads:
        busy = {
            isolation: threads.submit(read, kafka, broker.bootstrap, filling.topic, isolation)
            for isolation in ISOLATIONS
        }
        for _ in range(5):
            filling.put(300)
            filling.transact(10)
        filling.end()
        filling.wait_until_compacted(broker.log_dir)
        quiet = {
            isolation: threads.submit(read, kafka, broker.bootstrap, filling.topic, isolation)
            for isolation in ISOLATIONS
        }
        for isolation in ISOLATIONS:
            for task in (busy[isolation], quiet[isolation]):
                found = task.result(2 * DEADLINE_S)
                assert found, f"nothing was read ({isolation})"
                assert found[-1].key == END
                filling.check(found, committed=isolation == "read_committed")
            assert len(found) < 400, "the other records went"
    filling.close()

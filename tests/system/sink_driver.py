"""What Spark does with the exactly-once sink, without Spark: batches of two tasks, then a commit.

    python -m tests.system.sink_driver DIRECTORY BOOTSTRAP BATCHES

Each task and each commit is a process of its own; a task whose process dies is tried again, a
commit that fails ends the driver. A batch that is done is a file in DIRECTORY/commits; a driver
begins with the first that is not. Stops are as `tests.system.stops` has them.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.system.stops import Stops, with_stops

from barnabas.spark import sink_task
from barnabas.spark.sink_rows import SinkRows
from barnabas.spark.sink_task import SinkTaskId

TOPIC, TASKS, ROWS, ATTEMPTS = "sink-target", 2, 5, 4
LAYOUT = pa.schema([("value", pa.string()), ("partition", pa.int32())])


def rows(batch: int, task: int) -> pa.RecordBatch:
    """Return what a task writes: the same whenever it is asked."""
    values = [f"{batch}-{task}-{number}" for number in range(ROWS)]
    return pa.RecordBatch.from_pydict({"value": values, "partition": [task] * ROWS}, LAYOUT)


def write(directory: str, client: dict[str, str], batch: int, task: int) -> Any:
    stops = Stops(directory, batch)
    with_stops(stops)
    stops.at("start")
    _, handle = sink_task.send_transaction(
        client,
        SinkRows(LAYOUT, TOPIC),
        [rows(batch, task)],
        SinkTaskId("test", "sink", task),
        batch,
    )
    stops.at("written")
    return handle


def commit(directory: str, client: dict[str, str], batch: int, handles: list[Any]) -> None:
    stops = Stops(directory, batch)
    with_stops(stops)
    left = [handle for handle in handles if handle is not None]
    if left:
        sink_task.TransactionEnder(client).commit(left)
    stops.at("committed")


class Child:
    """A function that runs in a forked process."""

    def __init__(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._end, begin = os.pipe()
        self._process = os.fork()
        if not self._process:
            status = 1
            try:
                os.write(begin, pickle.dumps(work(*arguments)))
                status = 0
            finally:
                os._exit(status)
        os.close(begin)

    def result(self) -> tuple[bool, Any]:
        """Wait for its end: whether it came to its own, and what it returned."""
        with os.fdopen(self._end, "rb") as said:
            answer = said.read()
        _, status = os.waitpid(self._process, 0)
        return (True, pickle.loads(answer)) if status == 0 else (False, None)


def run(directory: str, bootstrap: str, batches: int) -> None:
    commits = Path(directory) / "commits"
    commits.mkdir(exist_ok=True)
    client = {"bootstrap.servers": bootstrap}
    for batch in range(len(list(commits.iterdir())), batches):
        handles: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            left = [task for task in range(TASKS) if task not in handles]
            running = {task: Child(write, directory, client, batch, task) for task in left}
            for task, child in running.items():
                fine, handle = child.result()
                if fine:
                    handles[task] = handle
        assert len(handles) == TASKS
        fine, _ = Child(commit, directory, client, batch, list(handles.values())).result()
        if not fine:
            sys.exit("the commit failed")
        (commits / str(batch)).touch()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))

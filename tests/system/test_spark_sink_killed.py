"""The exactly-once sink under many kills: as test_spark_killed.py, with a driver that is no Spark.

It does what Spark does (see `sink_driver`), but starts at once, so that every step can be met by
every kind of kill. `BARNABAS_CHAOS_KILLS` says how often at least; the seed is
`BARNABAS_CHAOS_SEED`, or is drawn, and printed.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.system.killing import Run, committed, seed
from tests.system.standalone import ROOT, Process
from tests.system.stops import COMMIT_STEPS, TASK_STEPS, planned

from barnabas import KafkaAdminClient
from barnabas.admin import NewTopic
from barnabas.testing import Cluster

pytest.importorskip("pyarrow", reason="pip install 'barnabas[spark]'")

from tests.system.sink_driver import ROWS, TASKS, TOPIC

VICTIMS = ("worker", "driver", "broker")
EVERY = len(VICTIMS) * (len(TASK_STEPS) + len(COMMIT_STEPS))
KILLS = max(12, 10 * int(os.environ.get("BARNABAS_CHAOS_KILLS", "0")))

pytestmark = [pytest.mark.system, pytest.mark.timeout(300 + 10 * KILLS)]


def test_every_row_is_written_once(tmp_path: Path) -> None:
    chosen = seed()
    print(f"BARNABAS_CHAOS_SEED={chosen}")
    kills = planned(chosen, KILLS, VICTIMS)
    batches = len(kills) + 2
    with Cluster(process=True) as cluster:
        with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, TASKS, 1)])
        words = [sys.executable, "-m", "tests.system.sink_driver", str(tmp_path)]
        words += [cluster.bootstrap, str(batches)]
        start = partial(Process, words, environment={"PYTHONPATH": str(ROOT)})
        Run(start, "commits", cluster, tmp_path).finish(kills)
        written = committed(cluster.bootstrap, TOPIC, TASKS)
    for task in range(TASKS):
        assert [record[1].decode() for record in written[task]] == [
            f"{batch}-{task}-{number}" for batch in range(batches) for number in range(ROWS)
        ]


def test_a_long_run_meets_every_step_with_every_kind_of_kill() -> None:
    met = {(kill["step"], kill["victim"]) for kill in planned(1, EVERY, VICTIMS)}
    assert len(met) == EVERY

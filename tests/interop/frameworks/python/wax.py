"""Bytewax: a dataflow from topic to topic that keeps its state, and snapshots, in a directory."""

import json
import sys
from datetime import timedelta

from bytewax import operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

bootstrap, source, target, recovery_dir = sys.argv[1:]
flow = Dataflow("count")
records = kafka.input("in", flow, brokers=[bootstrap], topics=[source], batch_size=10)
keyed = op.map("key", records.oks, lambda each: (each.key.decode(), json.loads(each.value)["id"]))


def count(seen: int | None, number: int) -> tuple[int, tuple[int, int]]:
    seen = (seen or 0) + 1
    return seen, (number, seen)


counted = op.stateful_map("count", keyed, count)
results = op.map(
    "result",
    counted,
    lambda each: KafkaSinkMessage(
        each[0].encode(), json.dumps({"id": each[1][0], "seen": each[1][1]}).encode()
    ),
)
kafka.output("out", results, brokers=[bootstrap], topic=target)
if not __import__("os").listdir(recovery_dir):
    init_db_dir(recovery_dir, 1)
recovery = RecoveryConfig(recovery_dir, backup_interval=timedelta(0))
cli_main(flow, epoch_interval=timedelta(seconds=0.2), recovery_config=recovery)

"""Pathway: count the records of each key from topic to topic, with its state in a directory."""

import sys

import pathway as pw

bootstrap, group, source, target, state_dir = sys.argv[1:]
settings = {
    "bootstrap.servers": bootstrap,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": "6000",
}


class Input(pw.Schema):
    id: int


records = pw.io.kafka.read(
    settings,
    topic=source,
    format="json",
    schema=Input,
    autocommit_duration_ms=100,
    name="records",
)
doubled = records.select(pw.this.id, double=pw.this.id * 2)
pw.io.kafka.write(doubled, settings, topic_name=target, format="json")
backend = pw.persistence.Backend.filesystem(state_dir)
pw.run(
    monitoring_level=pw.MonitoringLevel.NONE,
    persistence_config=pw.persistence.Config(backend, snapshot_interval_ms=200),
)

"""Pathway: count the records of each key from topic to topic, with its state in a directory."""

import json
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
    number: int  # "id" is a name of Pathway's own


@pw.udf
def double(number: int) -> bytes:
    return json.dumps({"id": number, "double": 2 * number}).encode()


records = pw.io.kafka.read(
    settings,
    topic=source,
    format="json",
    schema=Input,
    json_field_paths={"number": "/id"},
    autocommit_duration_ms=100,
    name="records",
)
doubled = records.select(value=double(pw.this.number))
pw.io.kafka.write(doubled, settings, topic_name=target, format="raw", value=doubled.value)
backend = pw.persistence.Backend.filesystem(state_dir)
pw.run(
    monitoring_level=pw.MonitoringLevel.NONE,
    persistence_config=pw.persistence.Config(backend, snapshot_interval_ms=200),
)

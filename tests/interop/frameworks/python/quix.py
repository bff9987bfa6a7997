"""Quix Streams: count the records of each key, exactly once, in a state store."""

import sys

from quixstreams import Application, State

bootstrap, group, source, target, state_dir = sys.argv[1:]
application = Application(
    broker_address=bootstrap,
    consumer_group=group,
    processing_guarantee="exactly-once",
    auto_offset_reset="earliest",
    commit_interval=0.1,
    state_dir=state_dir,
    consumer_extra_config={"session.timeout.ms": 6000},
)


def count(value: dict, state: State) -> dict:
    seen = state.get("seen", 0) + 1
    state.set("seen", seen)
    return {"id": value["id"], "seen": seen}


records = application.dataframe(application.topic(source, key_deserializer="str"))
records = records.apply(count, stateful=True)
records.to_topic(application.topic(target, key_serializer="str"))
application.run()

"""Faust: an agent that counts the records of each key in a table, which a changelog topic keeps."""

import sys

import faust

bootstrap, name, source, target, data_dir = sys.argv[1:6]
app = faust.App(
    name,
    broker=f"kafka://{bootstrap}",
    store="memory://",
    datadir=data_dir,
    topic_partitions=4,
    topic_replication_factor=1,
    # The other one loses records that it fetched before its own seek.
    processing_guarantee="exactly_once",
    broker_session_timeout=6.0,
    broker_heartbeat_interval=1.0,
    broker_commit_interval=0.2,
    stream_wait_empty=False,
    web_enabled=False,
)
records = app.topic(source, key_type=str, value_type=bytes, value_serializer="json")
results = app.topic(target, key_type=str, value_serializer="json")
seen = app.Table("seen", default=int, partitions=4)


@app.agent(records)
async def count(stream):
    async for key, value in stream.items():
        seen[key] += 1
        await results.send(key=key, value={"id": value["id"], "seen": seen[key]})


sys.argv[1:] = ["worker", "--loglevel", "info", "--without-web"]
app.main()

"""FastStream: a subscriber that publishes; a record is acknowledged after its result is sent."""

import asyncio
import sys

library, bootstrap, group, source, target = sys.argv[1:]
if library == "aiokafka":
    from faststream.kafka import KafkaBroker as Broker

    options = {"session_timeout_ms": 6000}
else:
    from faststream.confluent import KafkaBroker as Broker

    options = {"session_timeout_ms": 6000}

from faststream import AckPolicy, FastStream  # noqa: E402

broker = Broker(bootstrap)


@broker.subscriber(
    source,
    group_id=group,
    auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
    **options,
)
@broker.publisher(target)
async def double(body: dict) -> dict:
    return {"id": body["id"], "double": body["id"] * 2}


asyncio.run(FastStream(broker).run())

"""The consumer of the ZooKeeper era: blocking streams over chunks, balanced by watches.

These are the parts that run on an event loop; `barnabas.blocking.streams` has the consumer that
plain programs use.
"""

from __future__ import annotations

from barnabas.consumer.streams.connector import ConsumerConnector, ConsumerRebalanceFailed
from barnabas.consumer.streams.one_broker import OneBroker
from barnabas.consumer.streams.options import StreamOptions
from barnabas.consumer.streams.simple import SimpleConsumer

__all__ = [
    "ConsumerConnector",
    "ConsumerRebalanceFailed",
    "OneBroker",
    "SimpleConsumer",
    "StreamOptions",
]

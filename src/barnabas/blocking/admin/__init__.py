"""`KafkaAdminClient`: administer a cluster from synchronous code.

Calls that kafka-python has take its arguments and return its results (dicts with the fields of the
protocol); the others take and return the values of `barnabas.admin`, under the names of Kafka's own
admin client. A module per noun holds the calls as functions of a cluster client; `client.py` lists
them and runs them on a thread with a loop.
"""

from __future__ import annotations

from barnabas.blocking.admin.client import KafkaAdminClient

__all__ = ["KafkaAdminClient"]

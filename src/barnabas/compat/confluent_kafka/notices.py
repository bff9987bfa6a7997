"""Errors, throttling and statistics of a client, for the callbacks of its program."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NoBrokersAvailable
from barnabas.compat.confluent_kafka.config import Settings
from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.compat.confluent_kafka.events import Events
from barnabas.compat.confluent_kafka.failures import error_of
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition


class ThrottleEvent:
    """A broker asked the client to wait."""

    def __init__(self, broker_name: str, broker_id: int, throttle_time: float) -> None:
        self.broker_name = broker_name
        self.broker_id = broker_id
        self.throttle_time = throttle_time

    def __str__(self) -> str:
        milliseconds = int(self.throttle_time * 1000)
        return f"{self.broker_name}/{self.broker_id} throttled for {milliseconds} ms"


class Notices:
    """Turns what a cluster client notices into calls of `error_cb`, `throttle_cb`, `stats_cb`."""

    def __init__(
        self,
        settings: Settings,
        events: Events,
        client: ClusterClient,
        statistics: Callable[[], dict[str, Any]],
        of_partition: Callable[[TopicPartition], dict[str, Any]] = lambda partition: {},
    ) -> None:
        """On the loop; the functions return what this kind of client counts."""
        self._settings = settings
        self._events = events
        self._client = client
        self._statistics = statistics
        self._of_partition = of_partition
        self._told: str | None = None
        self._throttled_ms: dict[str, int] = {}
        self._started_s = time.monotonic()
        client.watch(self.look)
        if settings.stats_cb is not None and settings.statistics_interval_ms:
            self._timer = asyncio.get_running_loop().create_task(self._report())  # ends with it

    def look(self) -> None:
        """Report a new failure to reach the cluster, and throttling; on the loop."""
        failure = self._client.refresh_failure
        if failure is None:
            self._told = None
        elif str(failure) != self._told:
            self._told = str(failure)
            self.failed(failure)
        if self._settings.throttle_cb is not None:
            self._look_for_throttling(self._settings.throttle_cb)

    def failed(self, failure: BarnabasError) -> None:
        """Report a failure that no call of the program can raise."""
        self.tell(error_of(failure))
        if isinstance(failure, NoBrokersAvailable):
            self.tell(KafkaError(KafkaError._ALL_BROKERS_DOWN))

    def tell(self, error: KafkaError) -> None:
        """Queue an error for `error_cb` and the logger."""
        function, logger = self._settings.error_cb, self._settings.logger
        if logger is not None:
            level = logging.ERROR if error.fatal() else logging.WARNING
            self._events.add(lambda: logger.log(level, "%s: %s", error.name(), error.str()))
        if function is not None:
            self._events.add(lambda: function(error))

    def _look_for_throttling(self, function: Callable[..., object]) -> None:
        for node_id, name, throttled_ms in self._client.throttling():
            more_ms = throttled_ms - self._throttled_ms.get(name, 0)
            if more_ms > 0:
                self._throttled_ms[name] = throttled_ms
                event = ThrottleEvent(name, node_id, more_ms / 1000)
                self._events.add(lambda event=event: function(event))  # type: ignore[misc]

    async def _report(self) -> None:
        function = self._settings.stats_cb
        assert function is not None
        while True:
            await asyncio.sleep(self._settings.statistics_interval_ms / 1000)
            self.look()
            text = json.dumps(self._numbers())
            self._events.add(lambda text=text: function(text))  # type: ignore[misc]

    def _numbers(self) -> dict[str, Any]:
        """Return what librdkafka's statistics have, as far as we count it."""
        groups = self._client.metrics()
        all_brokers = groups["client-metrics"]
        now_s = time.monotonic()
        return {
            "name": self._client.client_id,
            "client_id": self._client.client_id,
            "ts": int(now_s * 1e6),
            "time": int(time.time()),
            "age": int((now_s - self._started_s) * 1e6),
            "replyq": 0,
            "tx": int(all_brokers.get("request-total", 0)),
            "tx_bytes": int(all_brokers.get("outgoing-byte-total", 0)),
            "rx": int(all_brokers.get("response-total", 0)),
            "rx_bytes": int(all_brokers.get("incoming-byte-total", 0)),
            "brokers": {
                f"{broker.host}:{broker.port}/{broker.node_id}": {
                    "name": f"{broker.host}:{broker.port}/{broker.node_id}",
                    "nodeid": broker.node_id,
                    "nodename": f"{broker.host}:{broker.port}",
                    "state": "UP" if self._client.ready(broker.node_id) else "INIT",
                }
                for broker in self._client.cluster.brokers.values()
            },
            "topics": self._topics(),
            **self._statistics(),
        }

    def _topics(self) -> dict[str, Any]:
        return {
            name: {
                "topic": name,
                "partitions": {
                    str(each.index): {
                        "partition": each.index,
                        "leader": each.leader_id,
                        **self._of_partition(TopicPartition(name, each.index)),
                    }
                    for each in topic.partitions.values()
                },
            }
            for name, topic in self._client.cluster.topics.items()
        }

"""What the console shows of requests: those that were answered, and those that wait right now.

Nothing is kept before `start`, nor after `stop`. What waits is looked up when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nlargest

from barnabas.broker.network.connection import Connection
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.request_watch import RequestWatch
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.fetch_sessions import FetchSession
from barnabas.model.ids import Uuid
from barnabas.model.observations import RequestsSeen, TopicClient, WaitingSeen
from barnabas.wire.apis import API_BY_KEY

WAITING_MAX = 200
KEYS_SHOWN = 3

AWAITED = {
    "Fetch": "records of {}",
    "Produce": "the replicas, or the disk, of {}",
    "DeleteRecords": "the replicas of {}",
    "JoinGroup": "the other members of the group",
    "SyncGroup": "the assignment by the leader of the group",
}


class RequestView:
    """Requests of one broker."""

    def __init__(
        self,
        metrics: RequestMetrics,
        network: SocketServer,
        clock: Callable[[], float],
        wall_ms: Callable[[], int],
        clock_ms: Callable[[], int],
        topic_id_of: Callable[[str], Uuid],
        sessions_of: Callable[[str], Iterable[int]],
    ) -> None:
        """`clock` is the one by which requests are timed, `clock_ms` the connections'.

        `sessions_of` returns the fetch sessions that read a topic.
        """
        self._metrics = metrics
        self._network = network
        self._wall_ms = wall_ms
        self._clock_ms = clock_ms
        self._topic_id_of = topic_id_of
        self._sessions_of = sessions_of
        self._watch = RequestWatch(clock, wall_ms)

    def start(self) -> None:
        """Begin to look at requests."""
        self._metrics.watch_requests(self._watch)

    def stop(self) -> None:
        """Look at no more."""
        self._metrics.watch_requests(None)

    def seen(self) -> RequestsSeen:
        """Return what was seen, and what waits."""
        watch = self._watch
        in_handling = list(self._network.in_handling())
        now_ms = self._clock_ms()
        longest = nlargest(WAITING_MAX, in_handling, key=lambda each: now_ms - each.last_active_ms)
        return RequestsSeen(
            watch.newest(),
            watch.slowest(),
            watch.errors(),
            [_waiting(each, now_ms) for each in longest],
            len(in_handling),
        )

    def clients_of(self, topic: str) -> list[TopicClient]:
        """Return who writes to a topic here, and who reads it."""
        watch = self._watch
        now, now_ms = watch.clock(), self._wall_ms()
        found = watch.topics.of(topic, self._topic_id_of(topic), self._sessions_of(topic), now)
        return [
            TopicClient(api, *who, now_ms - int((now - last) * 1000)) for api, who, last in found
        ]


def _waiting(connection: Connection, now_ms: int) -> WaitingSeen:
    session = connection.session
    api = API_BY_KEY[session.api_key].name if session.api_key in API_BY_KEY else "log-in"
    return WaitingSeen(
        api,
        session.client_id or "",
        str(session.principal),
        session.client_host,
        max(now_ms - connection.last_active_ms, 0),
        _awaits(connection, api),
    )


def _awaits(connection: Connection, api: str) -> str:
    """Return what the request in handling of a connection waits for."""
    parked = connection.parked
    if parked is None:
        return AWAITED.get(api, "its answer: other brokers, a disk, or its turn")
    keys = [each for key in parked.keys for each in _partitions(key)]
    named = ", ".join(keys[:KEYS_SHOWN])
    if len(keys) > KEYS_SHOWN:
        named += f" and {len(keys) - KEYS_SHOWN} more"
    return AWAITED.get(api, "a change of {}").format(named or "its partitions")


def _partitions(key: object) -> list[str]:
    """Return the partitions that a parked request is watched under, or what else that is."""
    if isinstance(key, FetchSession):
        return [f"{each.topic}-{each.partition}" for each in key.items.values()]
    return [f"{key[0]}-{key[1]}" if isinstance(key, tuple) and len(key) == 2 else str(key)]

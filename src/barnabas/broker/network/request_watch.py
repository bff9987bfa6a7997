"""Requests as the console shows them: the last ones, the slowest, and errors by client.

Requests are counted by an object of their API and version. While a console may ask, `WatchedCounts`
stand in for these objects, as those of the request log do; otherwise this costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.network.phases import Phases
from barnabas.broker.network.session import Session
from barnabas.broker.network.topic_clients import TopicClients
from barnabas.model.error_codes import ErrorCode
from barnabas.model.observations import ErrorSeen, RequestSeen
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.request import Counts, Request
    from barnabas.broker.network.request_metrics import ErrorCounts

RECENT_MAX = 200
SLOWEST_MAX = 50
ERRORS_MAX = 500
PERIOD_S = 300.0
"""The slowest requests are those of this period and of the one before."""
OWN_CLIENT = "barnabas-console"
"""Whose requests are not kept: they would be all that an idle broker has to show."""


class Answered(NamedTuple):
    """A request as it is kept; nothing in it is computed before it is read."""

    api: str
    version: int
    client_id: str | None
    session: Session
    size_bytes: int
    answered: float
    took_s: float
    """Without the time for which a consumer waits for new records."""
    phases: Phases | None
    throttle_ms: int
    code: int


class RequestWatch:
    """What was seen of requests, within bounds."""

    def __init__(self, clock: Callable[[], float], wall_ms: Callable[[], int]) -> None:
        self.clock = clock
        self.topics = TopicClients()
        self.recent: deque[Answered] = deque(maxlen=RECENT_MAX)
        self.slow_s = 0.0
        """A request that took longer is one of the slowest."""
        self._wall_ms = wall_ms
        self._slowest: list[tuple[float, int, Answered]] = []
        self._before: list[Answered] = []
        self._number = 0
        self._since = clock()
        self._errors: dict[tuple[str, int, str], tuple[int, float]] = {}

    def note_slow(self, answered: Answered) -> None:
        """Keep a request that took longer than `slow_s`."""
        if answered.answered - self._since > PERIOD_S:
            self._since = answered.answered
            self._before = [each for _, _, each in self._slowest]
            self._slowest = []
        self._number += 1
        entry = answered.took_s, self._number, answered
        if len(self._slowest) < SLOWEST_MAX:
            heappush(self._slowest, entry)
        else:
            heapreplace(self._slowest, entry)
        full = len(self._slowest) == SLOWEST_MAX
        self.slow_s = self._slowest[0][0] if full else 0.0

    def note_error(self, answered: Answered) -> None:
        """Count an error of a client."""
        key = answered.api, answered.code, answered.client_id or ""
        count = self._errors.pop(key, (0, 0.0))[0]  # the last one is at the end
        if len(self._errors) >= ERRORS_MAX:
            del self._errors[next(iter(self._errors))]
        self._errors[key] = count + 1, answered.answered

    # reading

    def newest(self) -> list[RequestSeen]:
        """Return the last requests, the newest first."""
        return self._seen(reversed(self.recent))

    def slowest(self) -> list[RequestSeen]:
        """Return the requests of the last minutes that took longest."""
        kept = [each for _, _, each in self._slowest] + self._before
        oldest = self.clock() - 2 * PERIOD_S
        kept = [each for each in kept if each.answered > oldest]
        kept.sort(key=lambda each: -each.took_s)
        return self._seen(kept[:SLOWEST_MAX])

    def errors(self) -> list[ErrorSeen]:
        """Return how often clients were answered errors, the most frequent first."""
        found = [
            ErrorSeen(api, ErrorCode.of(code).name, client_id, count, self._at_ms(last))
            for (api, code, client_id), (count, last) in self._errors.items()
        ]
        return sorted(found, key=lambda each: -each.count)

    def _at_ms(self, moment: float) -> int:
        return self._wall_ms() - int((self.clock() - moment) * 1000)

    def _seen(self, kept: Iterable[Answered]) -> list[RequestSeen]:
        seen = []
        for each in kept:
            phases = each.phases
            parts = (
                (0.0, each.took_s, 0.0, 0.0)
                if phases is None
                else (phases.queue_s, phases.local_s, phases.remote_s, phases.send_s)
            )
            queue_ms, local_ms, remote_ms, send_ms = (seconds * 1000 for seconds in parts)
            seen.append(
                RequestSeen(
                    self._at_ms(each.answered),
                    each.api,
                    each.version,
                    each.client_id or "",
                    str(each.session.principal),
                    each.session.client_host,
                    each.size_bytes,
                    queue_ms,
                    local_ms,
                    remote_ms,
                    each.throttle_ms,
                    send_ms,
                    ErrorCode.of(each.code).name if each.code else "",
                )
            )
        return seen


class WatchedCounts:
    """Counts the requests of an API and version by another object, and shows them to a watch."""

    __slots__ = ("_count", "_errors", "_keep", "_name", "_throttle_ms", "_watch", "counts", "other")

    def __init__(self, counts: Counts, name: str, errors: ErrorCounts, watch: RequestWatch) -> None:
        """Wrap what counts the requests while nobody may look."""
        self.counts = counts
        self._count = counts.answered
        self._name = name
        self._errors = errors.failed
        self._watch = watch
        self._keep = watch.recent.append
        self._throttle_ms = 0
        other = counts.other
        # The other requests of these APIs come from brokers.
        self.other: Counts | None = (
            None if other is None else WatchedCounts(other, f"{name} (broker)", errors, watch)
        )

    def answered(self, request: Request[Any], response: Message, now: float) -> None:
        """Count and keep a request that is answered now."""
        failures = self._errors.changes
        self._count(request, response, now)
        if request.client_id == OWN_CLIENT:
            return
        code = self._errors.last if self._errors.changes != failures else 0
        self._seen(request, now, code)
        if self._name == "Produce":
            self._watch.topics.produced(request, now)
        elif self._name == "Fetch":
            self._watch.topics.fetched(request, response, now)  # type: ignore[arg-type]

    def unanswered(self, request: Request[Any], now: float) -> None:
        """Count and keep a request that expects no response, and is done now."""
        self.counts.unanswered(request, now)
        self._seen(request, now, 0)
        if self._name == "Produce":
            self._watch.topics.produced(request, now)

    def throttled(self, throttle_ms: int) -> None:
        """Record that the response of a request asks its client to wait."""
        self._throttle_ms = throttle_ms
        self.counts.throttled(throttle_ms)

    def _seen(self, request: Request[Any], now: float, code: int) -> None:
        phases = request.phases
        if phases is None:
            took_s = now - request.received
        else:
            took_s = phases.queue_s + phases.local_s + phases.send_s
            if not self._name.startswith("Fetch"):
                took_s += phases.remote_s
        session = request.session
        session.client_id = request.client_id
        answered = Answered(
            self._name,
            request.version,
            request.client_id,
            session,
            request.size_bytes,
            now,
            took_s,
            phases,
            self._throttle_ms,
            code,
        )
        self._throttle_ms = 0
        self._keep(answered)
        if took_s > self._watch.slow_s:
            self._watch.note_slow(answered)
        if code:
            self._watch.note_error(answered)

"""Requests as the console shows them: some of the last ones, the slowest, and errors by client.

While a console may show them, the functions that count requests call `look` for those that were
answered an error, those that took a millisecond or more, and one a second of each connection: what
all others cost is two comparisons. Nothing else is kept of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from barnabas.broker.network.phases import Phases
from barnabas.broker.network.session import Session
from barnabas.broker.network.topic_clients import TopicClients
from barnabas.model.error_codes import ErrorCode
from barnabas.model.observations import ErrorSeen, RequestSeen
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.request import Request

Look: TypeAlias = Callable[["Request[Any]", "Message | None", float, int], None]
"""Called with a request, its response, the time, and the last error code in the response."""

RECENT_MAX = 200
SLOWEST_MAX = 50
ERRORS_MAX = 500
PERIOD_S = 300.0
"""The slowest requests are those of this period and of the one before."""
LOOK_S = 1.0
"""How long nothing is looked at on a connection that was looked at, but errors and slow requests.

Produce and Fetch requests do not count for the others, so that their topics are learned.
"""
SLOW_S = 0.001
"""From here on a request may be one of the slowest."""
OWN_CLIENT = "barnabas-console"
"""Whose requests are not kept: they would be all that an idle broker has to show."""

NAMES_OF_RECORDS = ("Produce", "FetchConsumer")


def watch_lines(name: str) -> str:
    """Return lines of Python that call `look` for a request of a name, if it is one to look at."""
    return (
        f"    if error or now >= request.session.{_due_of(name)}"
        f" or now - request.received >= {SLOW_S}:\n"
        "        look(request, response, now, error)"
    )


def _due_of(name: str) -> str:
    return "records_due" if name in NAMES_OF_RECORDS else "others_due"


class Answered(NamedTuple):
    """A request as it is kept; nothing in it is computed before it is shown."""

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
        self._recent: deque[Answered] = deque(maxlen=RECENT_MAX)
        self._slow_s = 0.0
        """A request that took longer is one of the slowest."""
        self._wall_ms = wall_ms
        self._slowest: list[tuple[float, int, Answered]] = []
        self._before: list[Answered] = []
        self._number = 0
        self._since = clock()
        self._errors: dict[tuple[str, int, str], tuple[int, float]] = {}

    def looker(self, name: str) -> Look:
        """Return what looks at requests of one name."""
        due = _due_of(name)
        notes: dict[str, Callable[[Request[Any], Any, float], None]] = {
            "Produce": self.topics.produced,
            "FetchConsumer": self.topics.fetched,
        }
        note_topics = notes.get(name)
        waits_for_records = name.startswith("Fetch")

        def look(request: Request[Any], response: Message | None, now: float, code: int) -> None:
            session, phases = request.session, request.phases
            took_s = now - request.received
            if phases is not None:
                phases.end(now)
                took_s = phases.queue_s + phases.local_s + phases.send_s
                if not waits_for_records:
                    took_s += phases.remote_s
            is_due = now >= getattr(session, due)
            if not (is_due or code or took_s > self._slow_s):
                return
            setattr(session, due, now + LOOK_S)
            if request.client_id == OWN_CLIENT:
                return
            session.client_id = request.client_id
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            self._keep(
                Answered(
                    name,
                    request.version,
                    request.client_id,
                    session,
                    request.size_bytes,
                    now,
                    took_s,
                    phases,
                    throttle_ms,
                    code,
                )
            )
            if note_topics is not None:
                note_topics(request, response, now)

        return look

    def _keep(self, answered: Answered) -> None:
        self._recent.append(answered)
        if answered.took_s > self._slow_s:
            self._note_slow(answered)
        if answered.code:
            self._note_error(answered)

    def _note_slow(self, answered: Answered) -> None:
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
        self._slow_s = self._slowest[0][0] if full else 0.0

    def _note_error(self, answered: Answered) -> None:
        key = answered.api, answered.code, answered.client_id or ""
        count = self._errors.pop(key, (0, 0.0))[0]  # the last one is at the end
        if len(self._errors) >= ERRORS_MAX:
            del self._errors[next(iter(self._errors))]
        self._errors[key] = count + 1, answered.answered

    # reading

    def newest(self) -> list[RequestSeen]:
        """Return the last requests that were looked at, the newest first."""
        return self._seen(reversed(self._recent))

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

"""Request metrics: how many of each API and version, their errors and sizes, and where time went.

Nearly all requests are answered before their handler returns. Such a request is one step in a list
that has a place for each microsecond: the list is its count, its local and its total time; all
other phases took none. A request that had to wait has `Phases`, which are recorded one by one.
What is exposed is put together when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from math import floor
from typing import Any, TypeAlias

from barnabas.broker.loop import LongSteps
from barnabas.broker.network.request import Counts, Request
from barnabas.broker.network.request_log import LoggedCounts
from barnabas.broker.network.request_watch import Look, RequestWatch, watch_lines
from barnabas.broker.network.response_errors import error_lines
from barnabas.broker.network.router import Served
from barnabas.metrics.catalogue import requests as catalogue
from barnabas.metrics.instruments import BUCKET_OF, Histogram, SizeHistogram
from barnabas.metrics.metric import Metric, label_text
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.apis import API_BY_KEY
from barnabas.wire.schema import Message

Answered: TypeAlias = Callable[[Request[Any], Message, float], None]

AT_ONCE_US = 1024
"""Requests that are answered at once in less time are counted by the microsecond."""
_ANSWERED = """
def answered(request, response, now):
    none = error = 0
{errors}
    errors.none += none
{watch}
    if request.phases is not None:
        record_phases(request, now)
        return
    try:
        times[floor((now - request.received) * 1e6)] += 1
    except IndexError:
        record_long(now - request.received)
    try:
        sizes[bucket_of[request.size_bytes]] += 1
    except IndexError:
        record_size(request.size_bytes)
"""
FIRST_US = 128
"""How long the list of microseconds is at first: few APIs need more."""
BLOCKED_S_MIN = 0.005
"""An append that takes longer is thought to wait for its disk."""

OTHER_NAMES = {"Fetch": "FetchFollower", "AddPartitionsToTxn": "AddPartitionsToTxnVerification"}
"""APIs some of whose requests have a name of their own."""


class Phase(IntEnum):
    """A stretch of a request's way, with the metric that Kafka has for it."""

    metric: Metric

    def __new__(cls, value: int, metric: Metric) -> Phase:
        member = int.__new__(cls, value)
        member._value_ = value
        member.metric = metric
        return member

    QUEUE = (0, catalogue.QUEUE_TIME)
    LOCAL = (1, catalogue.LOCAL_TIME)
    REMOTE = (2, catalogue.REMOTE_TIME)
    THROTTLE = (3, catalogue.THROTTLE_TIME)
    RESPONSE_QUEUE = (4, catalogue.RESPONSE_QUEUE_TIME)
    SEND = (5, catalogue.SEND_TIME)
    TOTAL = (6, catalogue.TOTAL_TIME)


WHOLE = (Phase.LOCAL, Phase.TOTAL)
"""The phases that a request which is answered at once has."""


class ErrorCounts:
    """The error codes in the responses of one API."""

    __slots__ = ("failed", "none")

    def __init__(self) -> None:
        self.none = 0
        self.failed: dict[int, int] = {}


class RequestKind:
    """The requests of one name: an API, or a part of it."""

    __slots__ = ("_folded", "at_once", "late", "name", "sizes", "versions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: list[RequestCounts] = []
        self.sizes = SizeHistogram()
        self.at_once = Histogram()
        """Microseconds of those answered at once, but not within AT_ONCE_US."""
        self.late = [Histogram() for _ in Phase]
        """Microseconds of those that waited, by phase."""
        self._folded: tuple[int, list[int], int] = (0, [], 0)
        """The lists of microseconds of all versions, as far as counted: count, buckets, total."""

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return sum(version.count for version in self.versions)

    def bins(self, phase: Phase) -> list[int]:
        """Return the time that all requests spent in a phase, as buckets of microseconds."""
        bins = list(self.late[phase].bins())
        if phase not in WHOLE:
            bins[0] += self.count - sum(bins)
            return bins
        _add(bins, self.at_once.bins())
        _add(bins, self._fold()[0])
        return bins

    def total_us(self, phase: Phase) -> int:
        """Return the time that all requests spent in a phase."""
        total = self.late[phase].total
        if phase in WHOLE:
            total += self.at_once.total + self._fold()[1]
        return total

    def _fold(self) -> tuple[list[int], int]:
        """Return the buckets and the sum of the microseconds that all versions have listed.

        A scrape asks for them several times, and mostly nothing was counted in between.
        """
        count = sum(sum(version.times) for version in self.versions)
        if count != self._folded[0]:
            bins, total = [0] * BUCKET_OF[AT_ONCE_US], 0
            for version in self.versions:
                for us, times in enumerate(version.times):
                    if times:
                        bins[BUCKET_OF[us]] += times
                        total += us * times
            self._folded = count, bins, total
        return self._folded[1:]


class RequestCounts:
    """The requests of one kind in one version; what a request is counted with."""

    __slots__ = (
        "_appends",
        "_errors",
        "_kind",
        "_look",
        "_metrics",
        "_others",
        "_response",
        "answered",
        "other",
        "times",
        "version",
    )

    def __init__(
        self,
        metrics: RequestMetrics,
        kind: RequestKind,
        served: Served[Any],
        version: int,
        errors: ErrorCounts,
    ) -> None:
        self.version = version
        self.times = [0] * FIRST_US
        """How many requests were answered at once, in so many microseconds; it grows."""
        self.other: RequestCounts | None = None
        """What counts the requests of this version that have another name."""
        self._others = 0
        self._kind = kind
        self._metrics = metrics
        self._appends = served.api.name == "Produce"
        self._response = served.api.response
        self._errors = errors
        self._look: Look | None = None
        self.answered: Answered = self._compiled()
        """Counts a request that is answered now: with the request, its response and the time."""

    def show_to(self, watch: RequestWatch | None) -> None:
        """Let a watch look at requests from now on, or none."""
        self._look = None if watch is None else watch.looker(self._kind.name)
        self.answered = self._compiled()

    def _compiled(self) -> Answered:
        """Compile `answered`. It is called for every request, and all that it does is inside."""
        names: dict[str, Any] = {
            "bucket_of": BUCKET_OF,
            "errors": self._errors,
            "failed": self._errors.failed,
            "floor": floor,
            "look": self._look,
            "record_long": self._record_long,
            "record_phases": self._record_phases,
            "record_size": self._kind.sizes.record,
            "sizes": self._kind.sizes.counts,
            "times": self.times,
        }
        source = _ANSWERED.format(
            errors="\n".join(error_lines(self._response, self.version)),
            watch="" if self._look is None else watch_lines(self._kind.name),
        )
        exec(source, names)
        answered: Answered = names["answered"]
        return answered

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return sum(self.times) + self._others

    def unanswered(self, request: Request[Any], now: float) -> None:
        """Count a request that expects no response, and is done now."""
        if self._look is not None and now >= request.session.records_due:
            self._look(request, None, now, 0)
        if request.phases is not None:
            self._record_phases(request, now)
        else:
            self._record_long(now - request.received)
            self._kind.sizes.record(request.size_bytes)

    def throttled(self, throttle_ms: int) -> None:
        """Record that the response of a request asks its client to wait."""
        self._kind.late[Phase.THROTTLE].record(throttle_ms * 1000)

    def _record_long(self, seconds: float) -> None:
        us = int(seconds * 1e6)
        if us < AT_ONCE_US:
            if us >= len(self.times):
                self.times.extend([0] * (AT_ONCE_US - len(self.times)))
            self.times[us] += 1
            return
        self._others += 1
        self._kind.at_once.record(us)
        self._metrics.long_steps.ran("request", self._kind.name, seconds)
        if self._appends and seconds >= BLOCKED_S_MIN:
            self._metrics.blocked_s += seconds

    def _record_phases(self, request: Request[Any], now: float) -> None:
        phases = request.phases
        assert phases is not None
        phases.end(now)
        self._others += 1
        late = self._kind.late
        spent = (
            (Phase.QUEUE, phases.queue_s),
            (Phase.REMOTE, phases.remote_s),
            (Phase.SEND, phases.send_s),
        )
        total_s = phases.local_s
        for phase, seconds in spent:
            if seconds:
                late[phase].record(int(seconds * 1e6))
                total_s += seconds
        late[Phase.LOCAL].record(int(phases.local_s * 1e6))
        late[Phase.TOTAL].record(int(total_s * 1e6))
        self._kind.sizes.record(request.size_bytes)


class PhaseTimes(Histogram):
    """The time that the requests of some kinds spent in a phase, in microseconds."""

    __slots__ = ("_kinds", "_phase")

    def __init__(self, kinds: Sequence[RequestKind], phase: Phase) -> None:
        super().__init__()
        self._kinds = kinds
        self._phase = phase

    def bins(self) -> list[int]:
        bins: list[int] = []
        for kind in self._kinds:
            _add(bins, kind.bins(self._phase))
        return bins

    @property
    def count(self) -> int:
        return sum(kind.count for kind in self._kinds)

    @property
    def total(self) -> int:
        return sum(kind.total_us(self._phase) for kind in self._kinds)

    def buckets(self) -> list[tuple[int, int]]:
        """Return the buckets; none if no request has ever been in this phase."""
        buckets = super().buckets()
        if self._phase in WHOLE:
            return buckets
        return [] if [bound for bound, _ in buckets] == [0] else buckets


class Sizes(Histogram):
    """The sizes of the requests of some kinds."""

    __slots__ = ("_kinds",)

    def __init__(self, kinds: Sequence[RequestKind]) -> None:
        super().__init__()
        self._kinds = kinds

    def bins(self) -> list[int]:
        bins: list[int] = []
        for kind in self._kinds:
            _add(bins, kind.sizes.bins())
        return bins

    @property
    def total(self) -> int:
        return sum(kind.sizes.total for kind in self._kinds)


class RequestMetrics:
    """The metrics of all requests, by API and version."""

    def __init__(
        self, registry: Registry, served: Mapping[int, Served[Any]], long_steps: LongSteps
    ) -> None:
        self.long_steps = long_steps
        self.by_version: dict[int, list[Counts | None]] = {
            key: [None] * (entry.last_version + 1) for key, entry in served.items()
        }
        """What counts the requests of an API and version; None until the first one (`begin`)."""
        self.blocked_s = 0.0
        """How long appends that probably waited for a disk took."""
        self._served = served
        self._logs_requests = False
        self._watch: RequestWatch | None = None
        self._registry = registry
        self._kinds: dict[str, list[RequestKind]] = {}
        """By name; those of an API with several names are all of them."""
        self._errors: dict[str, ErrorCounts] = {}
        registry.add_collector(self)

    def log_requests(self, on: bool) -> None:
        """Begin or end to log every request."""
        self._logs_requests = on
        for key, versions in self.by_version.items():
            for version, counts in enumerate(versions):
                if counts is not None:
                    versions[version] = self._logged(counts, self._served[key])

    def _logged(self, counts: Counts, served: Served[Any]) -> Counts:
        """Return what counts requests, wrapped if they are to be logged."""
        if isinstance(counts, LoggedCounts):
            counts = counts.counts
        return LoggedCounts(counts, served.api) if self._logs_requests else counts

    def watch_requests(self, watch: RequestWatch | None) -> None:
        """Let a watch look at requests from now on, or none."""
        self._watch = watch
        for kinds in self._kinds.values():
            for kind in kinds:
                for counts in kind.versions:
                    counts.show_to(watch)

    def begin(self, served: Served[Any], version: int) -> Counts:
        """Return what counts the requests of an API and version, from the first one on."""
        api = served.api.name
        errors = self._errors.get(api)
        if errors is None:
            errors = self._errors[api] = ErrorCounts()
            self._register(api)
        kinds = self._kinds["FetchConsumer" if api == "Fetch" else api]
        counts = self._counts(kinds[0], served, version, errors)
        if api in OTHER_NAMES:
            (other,) = self._kinds[OTHER_NAMES[api]]
            counts.other = self._counts(other, served, version, errors)
        chosen = self.by_version[served.api.key][version] = self._logged(counts, served)
        return chosen

    def _counts(
        self, kind: RequestKind, served: Served[Any], version: int, errors: ErrorCounts
    ) -> RequestCounts:
        counts = RequestCounts(self, kind, served, version, errors)
        if self._watch is not None:
            counts.show_to(self._watch)
        kind.versions.append(counts)
        return counts

    def _register(self, api: str) -> None:
        """Register the histograms of an API."""
        names = ["FetchConsumer" if api == "Fetch" else api]
        if api in OTHER_NAMES:
            names.append(OTHER_NAMES[api])
        kinds = {name: [RequestKind(name)] for name in names}
        for name, (kind,) in kinds.items():
            for phase in Phase:
                times = self._show(name, [kind], phase)
                if phase is not Phase.RESPONSE_QUEUE:
                    # Not those of all fetches: a sum over the label must be right.
                    self._registry.add(catalogue.REQUEST_SECONDS, times, name, phase.name.lower())
            self._registry.add(catalogue.REQUEST_BYTES, Sizes([kind]), name)
        if api == "Fetch":
            both = [kind for (kind,) in kinds.values()]
            for phase in Phase:
                self._show(api, both, phase)
            self._registry.add(catalogue.REQUEST_BYTES, Sizes(both), api)
            kinds[api] = both
        self._kinds |= kinds

    def _show(self, name: str, kinds: Sequence[RequestKind], phase: Phase) -> PhaseTimes:
        times = PhaseTimes(kinds, phase)
        self._registry.add(phase.metric, times, name)
        return times

    def response_stalled(self, api_key: int, stalled_ms: int) -> None:
        """Record a response that its client was slow to read; its total time is without that."""
        api = API_BY_KEY[api_key].name if api_key in API_BY_KEY else ""
        kinds = self._kinds.get("FetchConsumer" if api == "Fetch" else api)
        if kinds is not None:  # else it came before a login, and is not counted
            kinds[0].late[Phase.SEND].record(stalled_ms * 1000)

    # reading

    def requests(self) -> Iterator[tuple[str, int, int]]:
        """Yield name, version and number of the requests that were answered."""
        for name, kinds in list(self._kinds.items()):
            counts: dict[int, int] = {}
            for kind in kinds:
                for version in kind.versions:
                    counts[version.version] = counts.get(version.version, 0) + version.count
            for number, count in sorted(counts.items()):
                if count:
                    yield name, number, count

    def errors(self) -> Iterator[tuple[str, ErrorCode, int]]:
        """Yield API, error code, and how often it occurred in responses."""
        for api, errors in list(self._errors.items()):
            if errors.none:
                yield api, ErrorCode.NONE, errors.none
            for code, count in sorted(errors.failed.items()):
                yield api, ErrorCode.of(code), count

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        """Yield the counters of requests and errors."""
        labels = catalogue.REQUESTS.labels
        yield (
            catalogue.REQUESTS,
            [
                (label_text(labels, (name, str(version))), count)
                for name, version, count in self.requests()
            ],
        )
        labels = catalogue.ERRORS.labels
        yield (
            catalogue.ERRORS,
            [(label_text(labels, (api, code.name)), count) for api, code, count in self.errors()],
        )


def _add(bins: list[int], more: list[int]) -> None:
    """Add the counts of buckets to others."""
    if len(bins) < len(more):
        bins.extend([0] * (len(more) - len(bins)))
    for index, count in enumerate(more):
        if count:
            bins[index] += count

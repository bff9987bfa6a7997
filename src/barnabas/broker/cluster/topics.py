"""Creates, extends and deletes topics: writes the coordination tree, and waits for the controller.

A change is durable when it is in the tree; the controller does the rest. A request is answered
when this broker knows the outcome, or its timeout expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.loop import Conditions
from barnabas.config.broker import BrokerOptions
from barnabas.diary import subjects
from barnabas.metadata.cluster_view import ClusterView, TopicView
from barnabas.metadata.topic_names import check_name
from barnabas.metadata.topic_store import NewTopic, TopicStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.note import Note, NoteSink, unnoted

AUTOMATIC_TIMEOUT_MS = 5000
"""How long a client's first request for a topic waits for it; then the client asks again."""

Prepare = Callable[[NewTopic], Awaitable[NewTopic]]
Outcomes = dict[str, TopicView | RequestError | None]


async def _ready(topic: NewTopic, prepare: Prepare, outcomes: Outcomes) -> NewTopic | None:
    try:
        return await prepare(topic)
    except RequestError as refusal:
        outcomes[topic.name] = refusal
        return None


class Topics:
    """Creation, extension and deletion of topics."""

    def __init__(
        self,
        store: TopicStore,
        cluster: ClusterView,
        learned: Conditions,
        controller: ControllerHost,
        options: BrokerOptions,
        ensure_internal: Callable[[str], Awaitable[bool]],
        note: NoteSink = unnoted,
    ) -> None:
        """Use `learned` to wait for changes of the cluster's metadata.

        `ensure_internal` creates an internal topic of that name, if it does not exist, and returns
        whether the name is an internal topic's.
        """
        self._store = store
        self._cluster = cluster
        self._learned = learned
        self._controller = controller
        self._options = options
        self._ensure_internal = ensure_internal
        self._note = note
        self._lock = asyncio.Lock()

    def name_error(self, name: str) -> ErrorCode | None:
        """Return INVALID_TOPIC_EXCEPTION if this is not a legal topic name."""
        try:
            check_name(name)
        except RequestError as refusal:
            return refusal.code
        return None

    async def create_automatically(self, name: str) -> None:
        """Create a topic with the broker's defaults, unless it exists by now.

        An internal topic is created as its coordinators need it.
        """
        if await self._ensure_internal(name):
            return
        factor = self._factor(
            self._options.default_replication_factor, ErrorCode.LEADER_NOT_AVAILABLE
        )
        topic = NewTopic(name, self._options.num_partitions, factor)
        with refused_as(ErrorCode.LEADER_NOT_AVAILABLE):
            await self._create_unless_there(topic, check=True)

    async def create_internal(self, topic: NewTopic) -> None:
        """Create an internal topic, with no more replicas than live brokers."""
        factor = self._factor(topic.replication_factor, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with refused_as(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            await self._create_unless_there(replace(topic, replication_factor=factor), check=False)

    def _factor(self, wanted: int, too_early: ErrorCode) -> int:
        """Return as many replicas as are wanted, and at most one for each live broker.

        Raise `too_early` while brokers of this machine that could have one are still starting.
        """
        live = len(self._cluster.brokers)
        if live < min(wanted, self._options.barnabas_workers):
            raise RequestError(too_early, f"{live} of {self._options.barnabas_workers} workers run")
        return min(wanted, live)

    async def _create_unless_there(self, topic: NewTopic, *, check: bool) -> None:
        async with self._lock:
            if self._cluster.topic(topic.name) is None:
                if check:
                    self._store.check(topic)
                try:
                    await self._store.create([topic])
                    self._note_created(topic, "automatic" if check else "internal")
                except RequestError as refusal:
                    if refusal.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise
        await self._until_led([topic], AUTOMATIC_TIMEOUT_MS)

    def _note_created(self, topic: NewTopic, cause: str) -> None:
        counts = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
        self._note(Note("topic.created", subjects.topic(topic.name), cause, counts))

    async def adopt(self, topics: Sequence[NewTopic]) -> None:
        """Create topics for logs that are already on disk."""
        await self._store.create(topics)
        await self._until_led(topics, self._options.request_timeout_ms)

    async def create(
        self,
        topics: Sequence[NewTopic],
        *,
        dry_run: bool,
        timeout_ms: int,
        prepare: Prepare | None = None,
    ) -> list[TopicView | RequestError | None]:
        """Create the valid topics; return each topic as it is now, or its error.

        A dry run creates nothing and returns None for a topic that could be created. `prepare` may
        do what is needed before a topic exists, and complete or reject it.
        """
        outcomes: Outcomes = {}
        good: list[NewTopic] = []
        async with self._lock:
            for topic in topics:
                try:
                    self._store.check(topic, [other.name for other in good])
                    outcomes[topic.name] = None
                    good.append(topic)
                except RequestError as refusal:
                    outcomes[topic.name] = refusal
            if prepare is not None and not dry_run:
                good = [ready for each in good if (ready := await _ready(each, prepare, outcomes))]
            if good and not dry_run:
                with refused_as():
                    await self._store.create(good)
        if good and not dry_run:
            await self._until_led(good, timeout_ms)
            for topic in good:
                view = self._cluster.topic(topic.name)
                late = RequestError(
                    ErrorCode.REQUEST_TIMED_OUT, f"topic {topic.name!r} has no leaders yet"
                )
                outcomes[topic.name] = view if self._is_led(topic) and view else late
        return [outcomes[topic.name] for topic in topics]

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]],
        *,
        dry_run: bool,
        before: Callable[[int], None] = lambda added: None,
    ) -> None:
        """Increase a topic's number of partitions; the assignments are for the new ones.

        `before` is called with the number of new ones if they can be added, and may reject them.
        """
        async with self._lock:
            topic = self._cluster.topic(name)
            present = len(topic.partitions) if topic is not None else 0
            assignment = {present + number: each for number, each in enumerate(assignments)}
            with refused_as():
                await self._store.extend(name, count, assignment, dry_run=True)
                if not dry_run:
                    before(count - present)
                    await self._store.extend(name, count, assignment, dry_run=False)
        if not dry_run:
            grown = NewTopic(name, count, 1)
            await self._until_led([grown], self._options.request_timeout_ms)

    async def delete(self, name: str, timeout_ms: int) -> None:
        """Delete a topic; raises REQUEST_TIMED_OUT while a replica's broker is not alive."""
        async with self._lock:
            if self._cluster.topic(name) is None:
                raise RequestError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
                )
            with refused_as():
                await self._store.request_deletion(name)
        controller = self._controller
        term = controller.term
        if term is not None and not await controller.decided.until(
            lambda: controller.term is not term or name not in term.knowledge.topics, timeout_ms
        ):
            raise RequestError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"topic {name!r} is marked for deletion, which waits for all its brokers",
            )
        if term is None or name in term.knowledge.topics:
            raise RequestError(
                ErrorCode.NOT_CONTROLLER,
                f"topic {name!r} is marked for deletion by the next controller",
            )

    async def is_gone(self, name: str) -> bool:
        """Return whether a topic that this broker does not know is deleted, or about to be."""
        return await self._store.is_gone(name)

    async def _until_led(self, topics: Sequence[NewTopic], timeout_ms: int) -> None:
        await self._learned.until(lambda: all(self._is_led(topic) for topic in topics), timeout_ms)

    def _is_led(self, topic: NewTopic) -> bool:
        view = self._cluster.topic(topic.name)
        return (
            view is not None
            and len(view.partitions) >= topic.partitions
            and all(each.leader >= 0 for each in view.partitions)
        )

"""Hosts the controller in a broker: elections, one queue of events, requests to the brokers.

Every broker watches `/controller`. If the node does not exist, each tries to create it; one
succeeds and begins a term. Its events run one after the other in one task; what each decides is
sent before the next one runs. A term ends when the session is lost or a guarded write fails because
of a newer epoch; then the broker reads again who the controller is. A controller that resigns while
its session continues deletes the node: there can be no election before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from barnabas.broker.cluster.configs import Configs
from barnabas.broker.cluster.controller_channels import ControllerChannels
from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.controller_metrics import ControllerMetrics
from barnabas.broker.cluster.dialer import Dialer
from barnabas.broker.cluster.event_queue import EventQueue
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.loop import Conditions, LongSteps, spawn
from barnabas.controller.guarded_tree import ControllerMoved
from barnabas.controller.states import ControllerState
from barnabas.controller.term import Term
from barnabas.coordination.contract import (
    BadVersion,
    Coordination,
    Create,
    NodeExists,
    NoNode,
    SessionExpired,
    SessionState,
    Set,
)
from barnabas.coordination.contract import Event as TreeEvent
from barnabas.diary import subjects
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metadata.config_store import ConfigStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, ConfigError, CorruptFileError, RequestError
from barnabas.model.ids import new_uuid
from barnabas.model.note import Note, NoteSink, unnoted

logger = logging.getLogger("barnabas.controller")

Result = TypeVar("Result")
RETRY_S = 0.5
RELEASE_S_MAX = 5.0
"""How long a broker that stops waits for `/controller` to be deleted, as its session's end does."""


class ControllerHost:
    """Takes part in controller elections, and runs the controller after winning one."""

    def __init__(
        self,
        broker_id: int,
        tree: Coordination,
        cluster: ClusterView,
        configs: Configs,
        config_store: ConfigStore,
        control: ControllerCommands,
        dialer: Dialer,
        silence: Silence,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        metrics: ControllerMetrics,
        long_steps: LongSteps,
        note: NoteSink = unnoted,
    ) -> None:
        self.broker_id = broker_id
        self.metrics = metrics
        self._tree = tree
        self._cluster = cluster
        self._configs = configs
        self._config_store = config_store
        self._control = control
        self._dialer = dialer
        self._silence = silence
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._long_steps = long_steps
        self._note = note
        self._term: Term | None = None
        self._channels: ControllerChannels | None = None
        self._queue = EventQueue(metrics.waits)
        self._task: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[None]] = set()
        self._stopped = False
        self.decided = Conditions()
        """Callers that wait for a decision of the controller."""

    @property
    def term(self) -> Term | None:
        """Return the term, while this broker is the controller."""
        return self._term

    @property
    def events_waiting(self) -> int:
        """Return how many events wait for the controller, 0 on other brokers."""
        return len(self._queue) if self._term is not None else 0

    @property
    def requests_waiting(self) -> dict[int, int]:
        """Return how many requests of the controller wait for each broker."""
        return self._channels.waiting if self._channels is not None else {}

    async def start(self) -> bool:
        """Find the controller, or hold an election; return whether it is this broker."""
        await self._look()
        return self._term is not None

    async def stop(self) -> None:
        """End the term, and take part in no more elections."""
        self._stopped = True
        looks = list(self._looks)
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)
        await self._leave()

    async def retire(self) -> None:
        """Stop, and let the others hold an election at once."""
        if self._term is not None:
            self._note_term("controller.resigned", "stopped", self._term.epoch)
        await self.stop()
        if self._tree.state is SessionState.CONNECTED:
            with contextlib.suppress(BarnabasError, TimeoutError):  # the session's end will do it
                async with asyncio.timeout(RELEASE_S_MAX):
                    await self._release()

    async def resign(self) -> None:
        """End the term; after a lost session `start` finds the next controller."""
        if self._term is not None:
            logger.info(
                "broker %d is no longer the controller: epoch=%d", self.broker_id, self._term.epoch
            )
            lost = self._tree.state is SessionState.EXPIRED
            cause = "session-lost" if lost else "overtaken"
            self._note_term("controller.resigned", cause, self._term.epoch)
        await self._leave()
        self._cluster.controller_id = -1

    async def call(
        self,
        work: Callable[[Term], Awaitable[Result]],
        state: ControllerState = ControllerState.IDLE,
    ) -> Result:
        """Run work in the controller's queue; raise NOT_CONTROLLER if this broker is not it.

        `state` is what the controller does meanwhile; the term's own events know theirs.
        """
        term = self._term
        if term is None or self._silence.is_silent:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        outcome: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            term.state = state
            try:
                result = await work(term)
            except (ControllerMoved, SessionExpired):
                _fail(
                    outcome, RequestError(ErrorCode.NOT_CONTROLLER, "the controller's term ended")
                )
                raise
            except Exception as failure:
                _fail(outcome, failure)
                if not isinstance(failure, BarnabasError):
                    raise  # a bug, which must be reported, not only returned to the caller
                return
            if not outcome.done():
                outcome.set_result(result)

        self._queue.post(event)
        self.decided.watch(lambda: self._term is not term, _ended(outcome))
        return await outcome

    def unclean_election_allowed(self) -> None:
        """Elect leaders for partitions without one, if this broker is the controller."""
        if self._term is not None:
            self._queue.post(self._term.unclean_election_allowed)

    async def rebalance_leaders(self) -> None:
        """Elect preferred replicas, if this broker is the controller."""
        if self._term is None:
            return
        percentage = self._configs.options.leader_imbalance_per_broker_percentage
        keys = self._term.balance.to_rebalance(percentage)
        if keys:
            with contextlib.suppress(RequestError):  # another broker may be the controller by now
                await self.call(
                    lambda term: term.balance.elect_preferred(keys),
                    ControllerState.AUTO_LEADER_BALANCE,
                )

    async def all_delivered(self, timeout_ms: int) -> None:
        """Wait until all brokers have received every decision so far, or the timeout expires."""
        if self._channels is not None:
            await self._channels.all_delivered(timeout_ms)

    # -- elections ----------------------------------------------------------------------------

    def _watch(self, _: TreeEvent) -> None:
        if self._stopped:
            return
        task = spawn(self._look_again(), "the search for the controller")
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look_again(self) -> None:
        while True:
            try:
                await self._look()
            except SessionExpired:
                return  # the broker opens a new session, and calls `start`
            except BarnabasError as failure:
                # The watch has fired: without a retry this broker would never be a candidate again.
                logger.warning("could not read /controller, retry in %s s: %s", RETRY_S, failure)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _look(self) -> None:
        while True:
            if await self._tree.exists(nodes.CONTROLLER, self._watch) is None:
                if self._term is not None:
                    await self.resign()
                if not await self._run_for_office():
                    continue
            try:
                data, _ = await self._tree.get(nodes.CONTROLLER)
            except NoNode:
                continue
            try:
                elected = nodes.decode_controller(data)
            except CorruptFileError as failure:
                logger.error("no controller until /controller is deleted: %s", failure)
                elected = -1
            self._cluster.controller_id = elected
            if elected != self.broker_id and self._term is not None:
                await self.resign()
                self._cluster.controller_id = elected
            return

    async def _run_for_office(self) -> bool:
        """Create `/controller` and raise the epoch, or neither; begin a term on success."""
        try:
            data, stat = await self._tree.get(nodes.CONTROLLER_EPOCH)
        except NoNode:
            try:
                await self._tree.create(nodes.CONTROLLER_EPOCH, b"0")
            except NodeExists:
                logger.debug("another broker is a candidate too")
            data, stat = await self._tree.get(nodes.CONTROLLER_EPOCH)
        epoch = nodes.decode_controller_epoch(data) + 1
        claim = nodes.encode_controller(self.broker_id, self._now_ms())
        try:
            results = await self._tree.multi(
                [
                    Create(nodes.CONTROLLER, claim, ephemeral=True),
                    Set(nodes.CONTROLLER_EPOCH, str(epoch).encode(), stat.version),
                ]
            )
        except (NodeExists, BadVersion):
            return False
        await self._begin(epoch, results[1].version)  # type: ignore[union-attr]
        return True

    async def _begin(self, epoch: int, epoch_version: int) -> None:
        options = self._configs.options
        logger.info("broker %d is the controller: epoch=%d", self.broker_id, epoch)
        self._note_term("controller.elected", "elected", epoch)
        self._cluster.controller_id = self.broker_id
        queue = self._queue = EventQueue(self.metrics.waits)
        term = Term(
            self._tree,
            self.broker_id,
            epoch,
            epoch_version,
            options.endpoints.inter_broker,
            post=queue.post,
            allow_unclean=self._allow_unclean,
            new_topic_id=lambda: new_uuid(self._random_bytes),
            deletes_topics=options.delete_topic_enable,
            note=self._note,
            counts=self.metrics.counts,
        )
        self._term = term
        self._channels = ControllerChannels(
            self.broker_id,
            self._control,
            lambda: self._configs.options,
            self._dialer,
            term,
            queue.post,
        )
        queue.post(term.begin)
        self._task = spawn(self._run(term, queue, self._channels), "the controller")

    def _note_term(self, event: str, cause: str, epoch: int) -> None:
        self._note(Note(event, subjects.broker(self.broker_id), cause, {"epoch": epoch}))

    async def _allow_unclean(self, topics: Collection[str]) -> list[str]:
        """Return those of the topics that allow unclean elections."""
        found = await self._config_store.get_readable("topics", topics)
        return [topic for topic in found if self._allows_unclean(topic, found[topic])]

    def _allows_unclean(self, topic: str, overrides: Mapping[str, str]) -> bool:
        try:
            options = self._configs.topic_options(overrides)
        except ConfigError as failure:
            logger.error(
                "topic %s: no unclean election, its configs are invalid: %s", topic, failure
            )
            return False
        return options.unclean_leader_election_enable

    async def _run(self, term: Term, queue: EventQueue, channels: ControllerChannels) -> None:
        loop = asyncio.get_running_loop()
        while True:
            event = await queue.next()
            began_s = loop.time()
            try:
                await self._long_steps.timed("the controller", event())
            except (ControllerMoved, SessionExpired) as failure:
                logger.info("controller term ends: epoch=%d: %s", term.epoch, failure)
                self._task = None
                await self.resign()
                if isinstance(failure, ControllerMoved):
                    with contextlib.suppress(SessionExpired):
                        await self._release()
                return
            except BarnabasError:
                logger.exception("controller event failed: epoch=%d", term.epoch)
            except Exception as bug:  # noqa: BLE001 - the loop reports it
                # A controller that stopped here would keep its role and decide nothing.
                loop.call_exception_handler(
                    {"message": f"controller event failed: epoch={term.epoch}", "exception": bug}
                )
            channels.send(term.letters())
            self.metrics.handled(term.state, loop.time() - began_s)
            term.state = ControllerState.IDLE
            self.decided.look()

    async def _release(self) -> None:
        """Delete `/controller` if it belongs to this session, so that others can be elected."""
        try:
            _, stat = await self._tree.get(nodes.CONTROLLER)
            if stat.ephemeral_owner == self._tree.session_id:
                await self._tree.delete(nodes.CONTROLLER, stat.version)
        except (NoNode, BadVersion):
            return

    async def _leave(self) -> None:
        self._term = None
        if self._channels is not None:
            await self._channels.close()
            self._channels = None
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.decided.look()


def _fail(outcome: asyncio.Future[Result], failure: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(failure)


def _ended(outcome: asyncio.Future[Result]) -> asyncio.Future[None]:
    """Return a future that, once set, fails a call whose controller has resigned."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiter.add_done_callback(
        lambda _: _fail(outcome, RequestError(ErrorCode.NOT_CONTROLLER, "the controller has moved"))
    )
    outcome.add_done_callback(lambda _: waiter.cancel())
    return waiter

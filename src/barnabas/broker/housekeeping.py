"""Periodic tasks of a broker: checkpoints, timed flushes, retention, idle connections, expired
producers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.delegation_tokens import SharedTokens
from barnabas.broker.cluster.initial_users import InitialUsers
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.coordinators.transactions import TransactionHost
from barnabas.broker.loop import LongSteps
from barnabas.broker.network.client_quotas import ClientQuotas
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.isr_proposals import IsrProposals
from barnabas.broker.storage.logs import Logs
from barnabas.broker.storage.retention import Retention
from barnabas.config.broker import BrokerOptions

SWEEP_MS_MAX = 10_000
PRODUCER_EXPIRY_INTERVAL_MS = 600_000
QUOTA_EXPIRY_INTERVAL_MS = 600_000
TLS_RENEWAL_MS = 10_000
"""How often files with certificates are looked at."""
INITIAL_USERS_MS = 5_000
"""How often the directory of initial users is looked at."""
LOOP_TICK_MS = 100
"""How often the event loop is measured."""
NEVER_MS = 2**63 - 1


class Housekeeping:
    """The periodic tasks of one broker."""

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        now_ms: Callable[[], int],
        partitions: HostedPartitions,
        logs: Logs,
        retention: Retention,
        isr_proposals: IsrProposals,
        controller: ControllerHost,
        groups: GroupHost,
        transactions: TransactionHost,
        network: SocketServer,
        quotas: ClientQuotas,
        tokens: SharedTokens,
        initial_users: InitialUsers,
        long_steps: LongSteps,
        loop_tick: Callable[[], None] | None = None,
    ) -> None:
        """`loop_tick` measures the loop, where its time is real."""
        self._options = options
        self._now_ms = now_ms
        self._partitions = partitions
        self._logs = logs
        self._retention = retention
        self._isr_proposals = isr_proposals
        self._controller = controller
        self._groups = groups
        self._transactions = transactions
        self._network = network
        self._quotas = quotas
        self._tokens = tokens
        self._initial_users = initial_users
        self._long_steps = long_steps
        self._loop_tick = loop_tick
        self._handles: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Start the tasks; each runs first after its interval."""
        options = self._options()
        checkpoint_ms = min(
            options.log_flush_offset_checkpoint_interval_ms,
            options.log_flush_start_offset_checkpoint_interval_ms,
            options.replica_high_watermark_checkpoint_interval_ms,
        )
        idle_ms = options.connections_max_idle_ms
        sweep_ms = SWEEP_MS_MAX if idle_ms < 0 else min(max(idle_ms // 2, 10), SWEEP_MS_MAX)
        self._every("checkpoints", checkpoint_ms, self._checkpoints)
        self._every("retention", options.log_retention_check_interval_ms, self._retention.turn)
        self._every("sweep", sweep_ms, self._sweep)
        self._every("flushes", self._flush_interval_ms(), self._timed_flushes)
        self._every(
            "offsets",
            options.offsets_retention_check_interval_ms,
            self._groups.expire_offsets,
        )
        self._every(
            "transactions",
            options.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self._transactions.abort_timed_out,
        )
        self._every(
            "transactional ids",
            options.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._transactions.expire,
        )
        self._every(
            "in-sync replicas",
            max(options.replica_lag_time_max_ms // 2, 1),
            self._isr_proposals.shrink,
        )
        if options.auto_leader_rebalance_enable:
            self._every(
                "preferred leaders",
                options.leader_imbalance_check_interval_seconds * 1000,
                self._controller.rebalance_leaders,
            )
        self._every("quotas", QUOTA_EXPIRY_INTERVAL_MS, self._quotas.expire)
        self._every(
            "delegation tokens",
            options.delegation_token_expiry_check_interval_ms,
            self._expire_tokens,
        )
        if self._initial_users.is_used:
            self._every("initial users", INITIAL_USERS_MS, self._initial_users.look)
        self._every("certificates", TLS_RENEWAL_MS, self._renew_tls)
        if self._loop_tick is not None:
            self._every("loop", LOOP_TICK_MS, self._loop_tick)
        self._every("producers", PRODUCER_EXPIRY_INTERVAL_MS, self._expire_producers)

    def stop(self) -> None:
        """Start no further runs."""
        self._stopped = True
        for handle in self._handles.values():
            handle.cancel()

    async def abandon(self) -> None:
        """Cancel the runs in progress; a write that has begun is finished first."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drain(self) -> None:
        """Wait for the runs in progress."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _every(
        self, name: str, interval_ms: int, work: Callable[[], Coroutine[Any, Any, None] | None]
    ) -> None:
        loop = asyncio.get_running_loop()
        task: asyncio.Task[None] | None = None

        def turn() -> None:
            nonlocal task
            again()  # first: a run that fails must not end the task
            if task is not None and not task.done():
                return  # the disk is slow: the previous run has not ended
            result = self._long_steps.call(name, work)
            if result is not None:
                task = self._run(name, result)

        def again() -> None:
            if not self._stopped:
                self._handles[name] = loop.call_later(interval_ms / 1000, turn)

        again()

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._long_steps.timed(name, work))
        task.add_done_callback(lambda _: work.close())  # if it was cancelled before it began
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def renew_tls(self) -> None:
        """Let listeners use changed certificates now, not only when their files are looked at."""
        renewal = self._renew_tls()
        if renewal is not None and not self._stopped:
            self._run("certificates", renewal)

    def _renew_tls(self) -> Coroutine[Any, Any, None] | None:
        return self._network.renew_tls(self._options()) if self._network.uses_tls else None

    async def _checkpoints(self) -> None:
        await self._logs.write_checkpoints()

    def _sweep(self) -> None:
        self._network.sweep()
        self._quotas.end_throttles()

    def _flush_interval_ms(self) -> int:
        return min(self._options().log_flush_scheduler_interval_ms, 1000)

    def _timed_flushes(self) -> None:
        """Flush what has waited longer than `flush.ms` allows."""
        now_ms = self._now_ms()
        for partition in self._partitions.values():
            if partition.log.options.flush_ms != NEVER_MS and partition.log.needs_flush(now_ms):
                self._partitions.flusher.request(partition)

    async def _expire_tokens(self) -> None:
        if self._controller.term is not None:
            await self._tokens.sweep()

    def _expire_producers(self) -> None:
        now_ms = self._now_ms()
        expiration_ms = self._options().producer_id_expiration_ms
        for partition in self._partitions.values():
            partition.log.producers.expire(now_ms, expiration_ms)

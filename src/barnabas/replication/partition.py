"""One partition on this broker: who may write, which replicas are in sync, how far readers may see.

The high watermark is the offset below which a record will not be lost: every in-sync replica has
it. A leader counts the replicas of the *maximal* ISR, that is the committed ISR and the replicas
whose joining was proposed to the controller and not yet answered: whether they are in or not, the
watermark is right. It also waits for a follower that has caught up and is about to join, which
would otherwise never reach a watermark that runs ahead of it. On a leader the watermark only rises,
and stands still while fewer than `min.insync.replicas` are in sync.

While the flush policy demands a flush, the leader itself counts only as far as it has flushed, so
that nothing is read or acknowledged that a crash could undo.

A follower's watermark is its leader's, as far as its own log goes. A new leader's watermark may be
behind the last one's until its followers have fetched; what a follower has learned stays true, so
its watermark only falls when its log is truncated below it.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.diary import subjects
from barnabas.kernels.contract import Buffer
from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.log.scan import first_offset
from barnabas.log.validation import Origin
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH, NO_LEADER, TopicPartition, Uuid
from barnabas.model.isolation import READ_COMMITTED
from barnabas.model.note import Note
from barnabas.replication.follower_progress import Follower
from barnabas.replication.isr_state import IsrState, Proposal
from barnabas.replication.leader_context import ALONE, LeaderContext
from barnabas.replication.role import Role
from barnabas.replication.topic_traffic import TopicTraffic

OFFSET_BYTES = 8
"""A batch begins with its first offset."""
WATERMARK_FELL = "the high watermark of a leader fell in its epoch"


class Partition:
    """A partition hosted by this broker."""

    __slots__ = (
        "_assigned",
        "_broker_id",
        "_epoch_start",
        "_followers",
        "_in_sync",
        "_leader_context",
        "_muted",
        "_unconfirmed",
        "_watermark",
        "adding",
        "flush_owed",
        "leader",
        "leader_epoch",
        "log",
        "removing",
        "replicas",
        "topic_id",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        broker_id: int,
        leader_context: LeaderContext = ALONE,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader = NO_LEADER
        """The leader; none while this broker must not serve the partition (`mute`)."""
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.adding: tuple[int, ...] = ()
        self.removing: tuple[int, ...] = ()
        self.traffic: TopicTraffic | None = None
        """The numbers of its topic, which it shares with the others; None before any traffic."""
        self._assigned = NO_LEADER
        self._muted = False
        self._unconfirmed = False
        self._broker_id = broker_id
        self._leader_context = leader_context
        self._in_sync = IsrState()
        self._followers: dict[int, Follower] = {}
        self._epoch_start = 0
        self.flush_owed = False
        """Whether the flush policy holds back the high watermark."""
        self._watermark = 0
        """As far as the high watermark has come in this epoch, on a leader."""

    # -- roles --------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition, and may serve it."""
        return self.leader == self._broker_id

    @property
    def assigned_leader(self) -> int:
        """Return the leader last assigned by the controller, even while this broker is muted."""
        return self._assigned

    @property
    def is_assigned_leader(self) -> bool:
        """Return whether the controller last assigned the leadership to this broker."""
        return self._assigned == self._broker_id

    @property
    def isr(self) -> tuple[int, ...]:
        """Return the ISR that the controller has confirmed."""
        return self._in_sync.committed

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Return the ISR, plus the replicas whose joining has been proposed."""
        return self._in_sync.maximal

    @property
    def partition_epoch(self) -> int:
        """Return the partition epoch: the version of the ISR that this broker knows."""
        return self._in_sync.partition_epoch

    @property
    def followers(self) -> Sequence[Follower]:
        """Return what a leader knows about its followers."""
        return tuple(self._followers.values())

    def assume(self, role: Role) -> None:
        """Apply the controller's decision; a leader's new epoch begins at the log end."""
        self._assigned = role.leader
        self._show_leader()
        self.replicas = role.replicas
        self.adding = role.adding
        self.removing = role.removing
        self._in_sync.decided(role.isr, role.partition_epoch)
        new_epoch = role.leader_epoch > self.leader_epoch
        if new_epoch:
            self.leader_epoch = role.leader_epoch
        self.flush_owed = self._flush_is_due
        if not self.is_assigned_leader:
            self._followers.clear()
            self._watermark = 0
            return
        if new_epoch:
            self._watermark = self.log.high_watermark
            self._epoch_start = self.log.log_end_offset
            self.log.leader_epochs.assign(role.leader_epoch, self._epoch_start)
        self._keep_followers(new_epoch)
        self.advance_high_watermark()

    def _keep_followers(self, new_epoch: bool) -> None:
        known, self._followers = self._followers, {}
        now_ms = self._leader_context.clock_ms()
        for replica in self.replicas:
            if replica == self._broker_id:
                continue
            follower = known.get(replica)
            if follower is None or new_epoch:
                follower = follower or Follower(replica)
                follower.begin_epoch(now_ms, in_sync=replica in self._in_sync.committed)
            self._followers[replica] = follower

    def resign(self) -> None:
        """Stop leading or following: the partition is stopped or being deleted."""
        self._assigned = self.leader = NO_LEADER
        self._followers.clear()

    # Every request checks `leader`. So a broker that must be silent hides the leader, and none of
    # these checks has to know about muting.

    def mute(self) -> None:
        """Stop serving the partition until `unmute`: another leader may have been elected."""
        self._muted = True
        self._show_leader()

    def unmute(self) -> None:
        """Serve the partition again: no other leader was elected meanwhile."""
        self._muted = False
        self._show_leader()
        # Followers were rejected for a while, and get the full lag time to fetch again.
        now_ms = self._leader_context.clock_ms()
        for follower in self._followers.values():
            if follower.broker_id in self._in_sync.committed:
                follower.caught_up_ms = now_ms
        self.advance_high_watermark()

    def await_role(self) -> None:
        """Stop serving the partition until the controller has sent the role again (`confirm`)."""
        self._unconfirmed = True
        self._show_leader()

    def confirm(self) -> bool:
        """Record that the controller sent this role; return whether that was awaited."""
        awaited, self._unconfirmed = self._unconfirmed, False
        self._show_leader()
        return awaited

    def _show_leader(self) -> None:
        self.leader = NO_LEADER if self._muted or self._unconfirmed else self._assigned

    def check_leader(self, epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client knows (-1: any)."""
        if self.leader != self._broker_id:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.check_epoch(epoch)

    def check_replica(self, epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads or follows, in the epoch that the client knows."""
        if self.leader == NO_LEADER:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.check_epoch(epoch)

    def check_epoch(self, epoch: int) -> None:
        """Raise unless the given epoch is the current one (-1: any)."""
        if epoch != NO_EPOCH and epoch != self.leader_epoch:
            raise RequestError(
                ErrorCode.FENCED_LEADER_EPOCH
                if epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch of {self.topic_partition} is {self.leader_epoch}, not {epoch}",
            )

    # -- the leader ---------------------------------------------------------------------------

    def append(
        self,
        records: bytes | bytearray | memoryview,
        acks: int,
        version: int,
        now_ms: int,
        origin: Origin = "client",
    ) -> Appended:
        """Append records; readers see them once the high watermark has passed them."""
        if self.leader != self._broker_id:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self._in_sync.committed) < self.min_isr:
            raise RequestError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} in-sync replicas of {self.topic_partition} "
                f"(min.insync.replicas={self.log.options.min_insync_replicas})",
            )
        log = self.log
        appended = log.append_as_leader(
            records, self.leader_epoch, now_ms, request_version=version, origin=origin
        )
        # As in `_flush_is_due`: every append comes here, and a call would cost more than this.
        if log.log_end_offset - log.recovery_point >= log.options.flush_messages:
            self.flush_owed = True
        if not self._followers:
            if not self.flush_owed:
                assert self._watermark <= log.high_watermark, WATERMARK_FELL
                self._watermark = log.log_end_offset
                log.set_high_watermark(self._watermark)
        elif len(self._in_sync.maximal) == 1:
            self.advance_high_watermark()  # else it waits for a follower anyway
        return appended

    @property
    def min_isr(self) -> int:
        """Return `min.insync.replicas`, which cannot exceed the number of replicas."""
        return min(self.log.options.min_insync_replicas, len(self.replicas))

    @property
    def replication_factor(self) -> int:
        """Return how many replicas it should have, without those that a reassignment is adding."""
        return len(self.replicas) - len(self.adding)

    @property
    def is_under_replicated(self) -> bool:
        """Return whether fewer replicas are in sync than it should have."""
        return len(self._in_sync.committed) < self.replication_factor

    @property
    def _flush_is_due(self) -> bool:
        log = self.log
        return log.log_end_offset - log.recovery_point >= log.options.flush_messages

    def flushed(self) -> None:
        """Record that everything below the log's recovery point would survive a crash."""
        self.flush_owed = self._flush_is_due
        self.advance_high_watermark()

    def advance_high_watermark(self) -> bool:
        """Advance the high watermark; return whether it rose."""
        if not self.is_leader:
            return False
        log = self.log
        end = log.log_end_offset
        safe = min(log.recovery_point, end) if self.flush_owed else end
        if self._followers:
            if len(self._in_sync.committed) < self.min_isr:
                return False
            safe = min(safe, self._safe_with_followers(end))
        assert self._watermark <= log.high_watermark, WATERMARK_FELL
        if safe <= log.high_watermark:
            return False
        self._watermark = safe
        log.set_high_watermark(safe)
        return True

    def _safe_with_followers(self, end: int) -> int:
        """Return the lowest offset that all counted followers have reached."""
        leader_context = self._leader_context
        now_ms, lag_ms_max = leader_context.clock_ms(), leader_context.lag_ms_max()
        safe = end
        for follower in self._followers.values():
            if follower.end_offset < safe and (
                follower.broker_id in self._in_sync.maximal
                or (
                    follower.is_caught_up(end, now_ms, lag_ms_max)
                    and leader_context.is_alive(follower.broker_id)
                )
            ):
                safe = follower.end_offset
        return safe

    def follower_fetched(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int
    ) -> bool:
        """Record a follower's position; return whether the high watermark rose.

        Raises for a broker that is not assigned: one of us has not heard from the controller yet.
        """
        follower = self._followers.get(broker_id)
        if follower is None:
            raise RequestError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {broker_id} is not a follower of {self.topic_partition}",
            )
        if NO_EPOCH < broker_epoch < follower.broker_epoch:  # not sent before Fetch v15
            raise RequestError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {broker_id} has restarted since it sent this fetch of "
                f"{self.topic_partition}",
            )
        now_ms = self._leader_context.clock_ms()
        follower.fetched(offset, log_start_offset, broker_epoch, self.log.log_end_offset, now_ms)
        return self.advance_high_watermark()

    @property
    def low_watermark(self) -> int:
        """Return the low watermark: the offset below which no live replica keeps records."""
        starts = [
            follower.log_start_offset
            for follower in self._followers.values()
            if self._leader_context.is_alive(follower.broker_id)
        ]
        return min([self.log.log_start_offset, *starts])

    # -- the in-sync replicas -----------------------------------------------------------------

    def propose_expansion(self, broker_id: int) -> Proposal | None:
        """Propose to add a follower to the ISR, if it has caught up and no proposal is pending.

        Caught up means: it has reached the high watermark and this leader's epoch.
        """
        follower = self._followers.get(broker_id)
        if (
            follower is None
            or not self._in_sync.settled
            or broker_id in self._in_sync.maximal
            or follower.end_offset < max(self.log.high_watermark, self._epoch_start)
            or not self._leader_context.is_alive(broker_id)
        ):
            return None
        return self._propose((*self._in_sync.committed, broker_id))

    def propose_shrink(self) -> Proposal | None:
        """Propose to remove the followers that lag too far behind."""
        if not self.is_leader or not self._in_sync.settled:
            return None
        end = self.log.log_end_offset
        now_ms, lag_ms_max = self._leader_context.clock_ms(), self._leader_context.lag_ms_max()
        lagging = {
            follower.broker_id
            for follower in self._followers.values()
            if follower.broker_id in self._in_sync.committed
            and not follower.is_caught_up(end, now_ms, lag_ms_max)
        }
        if not lagging:
            return None
        return self._propose(tuple(r for r in self._in_sync.committed if r not in lagging))

    def _propose(self, isr: tuple[int, ...]) -> Proposal:
        # That it is a subset of the replicas is for the controller to check: one of Apache Kafka
        # takes replicas away first, and shrinks the ISR after that.
        assert isr, "the in-sync replicas are never empty"
        epochs = tuple(
            self._followers[replica].broker_epoch if replica in self._followers else NO_EPOCH
            for replica in isr
        )
        return self._in_sync.propose(self.topic_partition, self.leader_epoch, isr, epochs)

    def explained(self, proposal: Proposal) -> Note:
        """Return the note of a proposed ISR: who joins or leaves, and how far behind it is."""
        before, after = self._in_sync.committed, proposal.isr
        end, now_ms = self.log.log_end_offset, self._leader_context.clock_ms()
        changed = set(before) ^ set(after)
        is_shrink = len(after) < len(before)
        data = {
            "from": list(before),
            "to": list(after),
            "leader": self._broker_id,
            "leader_epoch": self.leader_epoch,
            "high_watermark": self.log.high_watermark,
            "end_offset": end,
            "min_isr": self.min_isr,
            "replicas": [
                {
                    "id": follower.broker_id,
                    "end_offset": follower.end_offset,
                    "behind": max(end - follower.end_offset, 0) if follower.end_offset >= 0 else -1,
                    "caught_up_ms_ago": now_ms - follower.caught_up_ms
                    if follower.caught_up_ms
                    else -1,
                    "alive": self._leader_context.is_alive(follower.broker_id),
                }
                for follower in self._followers.values()
                if follower.broker_id in changed
            ],
        }
        if is_shrink:
            data["lag_ms_max"] = self._leader_context.lag_ms_max()
        return Note(
            "isr.shrink" if is_shrink else "isr.expand",
            subjects.partition(*self.topic_partition),
            "lag-time" if is_shrink else "caught-up",
            data,
        )

    def proposal_accepted(
        self, proposal: Proposal, isr: tuple[int, ...], partition_epoch: int
    ) -> bool:
        """Apply an ISR that the controller confirmed; return whether the high watermark rose."""
        if not self.is_assigned_leader or proposal.leader_epoch != self.leader_epoch:
            return False
        self._in_sync.decided(isr, partition_epoch, proposal)
        return self.advance_high_watermark()

    def proposal_refused(self, proposal: Proposal, code: ErrorCode) -> Proposal | None:
        """Handle the controller's rejection; return what to send again, None to wait."""
        return self._in_sync.refused(proposal, code)

    # -- the follower -------------------------------------------------------------------------

    def append_from_leader(
        self, records: Buffer, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> int:
        """Append the leader's records and follow its watermarks; return the number of batches."""
        log = self.log
        if len(records) >= OFFSET_BYTES and log.log_start_offset == log.log_end_offset:
            first = first_offset(records)
            if first < log.log_end_offset:
                # The leader's log starts inside a batch, which is sent whole: so must ours.
                log.truncate_all(first, now_ms)
        count = log.append_as_follower(records, now_ms) if len(records) else 0
        log.set_high_watermark(max(log.high_watermark, min(high_watermark, log.log_end_offset)))
        if log.log_start_offset < log_start_offset <= log.high_watermark:
            log.delete_records_before(log_start_offset)
        return count

    # -- readers ------------------------------------------------------------------------------

    @property
    def knows_its_end(self) -> bool:
        """Return whether a leader's watermark has reached what its predecessors exposed to readers.

        A new leader's watermark may be behind the old one's until its followers have fetched.
        Everything exposed before is below the start of its epoch.
        """
        return self.log.high_watermark >= self._epoch_start

    def readable_end(self, isolation: int) -> int:
        """Return the offset at which a consumer's reads end."""
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

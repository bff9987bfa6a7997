"""Requests for a group's offsets: commit, fetch and delete.

Whether they are allowed is the group's decision (members, or anyone while it has none); the offsets
themselves are the table's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.diary import subjects
from barnabas.groups.call import Call, answered
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.classic_rebalances import ClassicRebalances
from barnabas.groups.counts import GroupCounts
from barnabas.groups.fetching import refused
from barnabas.groups.group import Groups
from barnabas.groups.offset_table import OffsetTable, refused_commit, refused_txn_commit
from barnabas.groups.offsets import Commit
from barnabas.groups.store_errors import offset_error
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome, Reply
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

TOOLS = ("adminclient", "admin", "barnabas-cli", "barnabas-admin")
"""How the client ids of tools begin."""
MOVES_MAX = 20
"""How many moved offsets a note names."""


class OffsetRequests:
    """Answers requests about the offsets of one coordinator's groups."""

    def __init__(
        self,
        groups: Groups,
        offsets: OffsetTable,
        rebalances: ClassicRebalances,
        counts: GroupCounts,
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._rebalances = rebalances
        self._counts = counts

    def handle_commit(self, request: OffsetCommitRequest, call: Call) -> Outcome:
        """OffsetCommit: by a member of the current generation, or by anyone to an idle group."""
        error = self._commit_error(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            transactional=False,
        )
        if error is not ErrorCode.NONE:
            return answered(call, refused_commit(request, error))
        outcome = Outcome()
        commits, response = self._offsets.commits(request, call.version, call.now_ms)
        outcome.replies.append(Reply(call.token, response))
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            self._rebalances.keep_alive(group, request.member_id, call.now_ms, outcome)
        if commits:
            if request.generation_id_or_member_epoch < 0:
                self._note_reset(request.group_id, commits, call, outcome)
            self._store(request.group_id, commits, None, call, outcome)
        return outcome

    def handle_txn_commit(self, request: TxnOffsetCommitRequest, call: Call) -> Outcome:
        """TxnOffsetCommit: like a commit, but visible only after the transaction's marker."""
        error = self._commit_error(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            call.version,
            transactional=True,
        )
        if error is not ErrorCode.NONE:
            return answered(call, refused_txn_commit(request, error))
        outcome = Outcome()
        commits, response = self._offsets.txn_commits(request, call.now_ms)
        outcome.replies.append(Reply(call.token, response))
        if commits:
            outcome.producer = (request.producer_id, request.producer_epoch)
            self._store(request.group_id, commits, request.producer_id, call, outcome)
        return outcome

    def fetch(
        self, asked: OffsetFetchRequestGroup, version: int, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch for one group; see `fetching` for requests and responses of all versions."""
        group = self._groups.get(asked.group_id)
        if group is not None:
            error = group.fetch_error(asked.member_id, asked.member_epoch)
            if error is not ErrorCode.NONE:
                return refused(asked, version, error)
        return self._offsets.fetch(asked, version, require_stable)

    def handle_delete(self, request: OffsetDeleteRequest, call: Call) -> Outcome:
        """OffsetDelete: delete offsets of topics that no member reads."""
        group = self._groups.get(request.group_id)
        subscribed: Collection[str] = ()
        error = ErrorCode.NONE
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            topics = group.subscribed_topics()
            if topics is None:
                error = ErrorCode.NON_EMPTY_GROUP
            subscribed = topics or ()
        if error is not ErrorCode.NONE:
            return answered(call, OffsetDeleteResponse(error_code=error))
        response = OffsetDeleteResponse()
        deleted: list[TopicPartition] = []
        for topic in request.topics:
            is_read = topic.name in subscribed
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            for asked in topic.partitions:
                answer.partitions.append(
                    OffsetDeleteResponsePartition(
                        partition_index=asked.partition_index, error_code=code
                    )
                )
                if not is_read:
                    deleted.append(TopicPartition(topic.name, asked.partition_index))
        known = self._offsets.of(request.group_id)
        records, undo_remove = self._offsets.remove(
            request.group_id, [partition for partition in deleted if partition in known]
        )
        self._counts.offset_deletions.add(len(records))

        def undo(code: ErrorCode) -> list[Reply]:
            undo_remove()
            return [Reply(call.token, OffsetDeleteResponse(error_code=offset_error(code)))]

        return Outcome([Reply(call.token, response)], records, undo=undo if records else None)

    def _note_reset(
        self,
        group_id: str,
        commits: Mapping[TopicPartition, Commit],
        call: Call,
        outcome: Outcome,
    ) -> None:
        """Note offsets that are set from outside: by a tool, or back.

        A consumer without a group protocol commits like that, too, but only forward.
        """
        is_tool = call.client_id.startswith(TOOLS)
        offsets = self._offsets.by_group.get(group_id)
        known = {} if offsets is None else offsets.committed
        moves: dict[str, list[int]] = {}
        is_back = False
        for key, commit in commits.items():
            present = known.get(key)
            before = -1 if present is None else present.offset
            if before != commit.offset and (is_tool or commit.offset < before):
                is_back = is_back or commit.offset < before
                moves[str(key)] = [before, commit.offset]
        if moves:
            outcome.note(
                "offsets.reset",
                subjects.group(group_id),
                "moved-back" if is_back else "tool",
                {
                    "moves": dict(list(moves.items())[:MOVES_MAX]),
                    "partitions": len(moves),
                    "client_id": call.client_id,
                    "host": call.client_host.removeprefix("/"),
                },
            )

    # -- inside

    def _commit_error(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool,
    ) -> ErrorCode:
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION if generation >= 0 else ErrorCode.NONE
        return group.commit_error(
            member_id, instance_id, generation, version, transactional=transactional
        )

    def _store(
        self,
        group_id: str,
        commits: Mapping[TopicPartition, Commit],
        producer_id: int | None,
        call: Call,
        outcome: Outcome,
    ) -> None:
        """Store commits; a group without members exists through its offsets."""
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id, call.now_ms)
        outcome.records, undo_store = self._offsets.store(group_id, commits, producer_id)
        self._counts.offset_commits.add(len(commits))
        # Not the outcome itself: that would be a reference cycle, left to the garbage collector.
        replies = outcome.replies

        def undo(code: ErrorCode) -> list[Reply]:
            undo_store()
            for topic in replies[0].response.topics:
                for partition in topic.partitions:
                    if partition.error_code == ErrorCode.NONE:
                        partition.error_code = offset_error(code)
            return replies

        outcome.undo = undo

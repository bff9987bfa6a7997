"""Exactly once: each task of a stream's batch writes one transaction, which the driver commits.

A task takes the transactional id of its place (`TaskName`), which ends what an earlier attempt left
open. It reads its marker: the number of the last batch that it committed, kept as an offset of a
group of the same name. A batch that is not newer was written before: nothing is sent. Otherwise
rows and the new marker go into one transaction, which the task leaves open and describes in a
`Written`. When all tasks are done the driver commits them one after the other; if it dies between
two, Spark runs the batch again: tasks that were committed skip it, the others write it again.

That rests on a replay giving the same rows to the same task (see `plan`), on transactions that
outlive a batch, and on markers that outlive a dead driver: brokers keep a group's offsets for
offsets.retention.minutes, a week unless told otherwise, in which a query that died between two
commits must be started again. Transactions are whole or absent task by task, not across tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.model.error_codes import ErrorCode

TIMEOUT_MS = 900_000
"""How long a transaction may stay open, unless options say else: the most that brokers allow."""

ENDED_ALREADY = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""Answers to an abort that say that there is nothing left to abort.

Spark aborts after a commit that failed, which may have taken effect before it did.
"""


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task's place in a query: the same in every run and every attempt."""

    prefix: str
    query: str
    task: int

    @property
    def transactional_id(self) -> str:
        """The name of its transactions, and of the group that has its marker."""
        return f"{self.prefix}-{self.query}-{self.task}"


def was_written(markers: Iterable[int], batch: int) -> bool:
    """Tell whether a task has committed a batch; markers are batch numbers plus one."""
    return max(markers, default=0) > batch

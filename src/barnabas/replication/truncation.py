"""How far a follower must truncate its log when it has diverged from its leader.

The leader returns the end of the greatest epoch that it knows at or below the follower's last one.
What the follower has beyond the common part was never acknowledged.
"""

from __future__ import annotations

from barnabas.log.partition_log import PartitionLog

UNKNOWN = -1


def truncation_offset(log: PartitionLog, epoch: int, end_offset: int) -> int:
    """Return where to truncate `log`, whose leader says that `epoch` ends at `end_offset`.

    If the follower does not know the leader's epoch, it truncates to the end of its next lower one;
    its next fetch then carries that epoch, and the leader responds again if need be.
    """
    log_end = log.log_end_offset
    if end_offset == UNKNOWN:
        return min(log.high_watermark, log_end)
    if epoch == UNKNOWN:
        return min(end_offset, log_end)
    own_epoch, own_end = log.leader_epochs.end_offset_of(epoch, log_end)
    if own_end == UNKNOWN:
        return min(end_offset, log_end)
    if own_epoch != epoch:
        return min(own_end, log_end)
    return min(end_offset, own_end, log_end)

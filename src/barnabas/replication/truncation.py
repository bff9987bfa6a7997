"""How much of its log a follower must give up when it and its leader have parted.

The leader names the end of the greatest epoch that it knows at or below the follower's last one.
What the follower has beyond the common part was never promised to anyone.
"""

from __future__ import annotations

from barnabas.log.partition_log import PartitionLog

UNKNOWN = -1


def truncation_offset(log: PartitionLog, epoch: int, end_offset: int) -> int:
    """Return where to cut `log`, whose leader says that `epoch` ends at `end_offset`.

    Where the follower does not know the leader's epoch, it cuts to the end of the one below that
    it knows; its next fetch then carries that epoch, and the leader answers again if need be.
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

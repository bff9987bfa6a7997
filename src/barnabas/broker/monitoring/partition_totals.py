"""How many partitions of this broker are led, followed, short of replicas, or late."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from barnabas.broker.monitoring.family import RUN
from barnabas.replication.partition import Partition

LATE_AFTER_MS = 300_000
"""By how much a transaction may exceed the largest time-out before it counts as late: its
coordinator should have aborted it."""


class PartitionTotals(NamedTuple):
    """Numbers over all partitions; all but the first are about those that are led here."""

    hosted: int = 0
    led: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    reassigning: int = 0
    producer_ids: int = 0
    late_transactions: int = 0


def count_partitions(
    partitions: Sequence[Partition], broker_id: int, now_ms: int, transaction_ms_max: int
) -> Generator[None, None, PartitionTotals]:
    """Count in one pass, and return the numbers; yield where the broker may go on meanwhile.

    So a partition that changes during the pass is counted as it was or as it is.
    """
    hosted = led = under = under_min = at_min = reassigning = producer_ids = late = 0
    late_before_ms = now_ms - transaction_ms_max - LATE_AFTER_MS
    for first in range(0, len(partitions), RUN):
        for partition in partitions[first : first + RUN]:
            hosted += 1
            if partition.leader != broker_id:
                continue
            led += 1
            log = partition.log
            in_sync = len(partition.isr)
            if in_sync < len(partition.replicas) and partition.is_under_replicated:
                under += 1
            if in_sync <= log.options.min_insync_replicas:
                min_isr = partition.min_isr
                under_min += in_sync < min_isr
                at_min += in_sync == min_isr
            if partition.adding or partition.removing:
                reassigning += 1
            producers = log.producers
            producer_ids += len(producers)
            if producers.first_unstable_offset is not None:
                open_ms = producers.oldest_open_ms
                late += open_ms is not None and 0 < open_ms < late_before_ms
        yield
    return PartitionTotals(hosted, led, under, under_min, at_min, reassigning, producer_ids, late)

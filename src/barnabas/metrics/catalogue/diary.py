"""The diary: how many decisions were noted, and why groups rebalanced."""

from barnabas.metrics.metric import Kind, Metric

ENTRIES = Metric(
    "barnabas_diary_entries_total",
    Kind.COUNTER,
    "Decisions that were noted in the diary or the state-change log, repeated ones included.",
    ("event",),
)
REBALANCES = Metric(
    "barnabas_rebalances_total",
    Kind.COUNTER,
    "Rebalances of groups that this broker coordinates, by what began them.",
    ("cause",),
)
DROPPED = Metric(
    "barnabas_diary_dropped_total",
    Kind.COUNTER,
    "Entries that were not written to the diary's topic, because it was away for too long.",
)

"""Replicates topics from a source to a target cluster, exactly once, and keeps up with them.

Records are copied partition for partition, in transactions on the target. Each transaction also
writes the source offsets that it has copied up to, to a compacted topic of the mirror: a mirror
that dies at any point leaves records and positions that agree, and its successor continues from
there.

    mirror.py              sessions: take over, sync topics, copy until a failure or the end
    engine.py              opens what copies: in this process …
    rounds.py              … or in others, by rounds of tasks
    tasks.py               a task: some shards, for a while
    copier.py              records and positions, one transaction after another
    checkpoints.py         shards of partitions, and what keeps their writers apart
    positions.py           the offsets that the source was read up to, as records
    provenance.py          the header with a record's origin: no loops, exact offset translation
    replication_policy.py  the topic filter, and names on the target
    topic_sync.py          the target's topics, kept like the source's
    group_offsets.py       offsets of consumer groups, translated to the target
    clusters.py            clients of both clusters    client_options.py  and their options
    progress.py            rates and lag               failures.py  what is retriable
"""

"""Copies topics from one cluster to another, exactly once, and keeps up with them.

Records go partition for partition, in transactions on the target. Each transaction also writes
how far the source was read, to a compacted topic of the mirror: a mirror that dies at any point
leaves records and positions that agree, and its successor goes on from there.

    selection.py      which topics, and their names on the target
    provenance.py     the header that says where a record came from: no loops, exact translation
    positions.py      how far the source was read, as records
    topic_plan.py     what the target's topics need to be like the source's
    progress.py       rates and lag
    translation.py    which offset of the target stands for one of the source
    session.py        copying, from a start to a failure    mirror.py    sessions, one after another
    group_offsets.py  groups' offsets, from one cluster to the other
"""

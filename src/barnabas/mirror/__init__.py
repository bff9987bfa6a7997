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
    mirror.py         sessions, one after another    session.py   one, from a start to a failure
    copying.py        records and positions in one transaction after another
    in_process.py     … in this process              rounds.py    … in others, by errands
    lanes.py          what those share out           marks.py     what keeps them apart
    group_offsets.py  groups' offsets, from one cluster to the other
"""

"""Consumer group coordinator: plain state machines over the records of `__consumer_offsets`.

`coordinator` is the door; `fetching` turns OffsetFetch of all versions into questions about single
groups.
"""

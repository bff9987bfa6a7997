"""Consumer group coordinator: plain state machines over the records of `__consumer_offsets`.

`coordinator` is the entry point; `fetching` turns
OffsetFetch of all versions into requests for single groups.
"""

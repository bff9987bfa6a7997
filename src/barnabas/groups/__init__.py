"""Consumer group coordinator: plain state machines over the records of `__consumer_offsets`."""

"""Transaction coordinator: plain state machines over the records of `__transaction_state`."""

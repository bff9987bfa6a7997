"""One machine's brokers: a supervisor, and worker processes that are a whole broker each."""

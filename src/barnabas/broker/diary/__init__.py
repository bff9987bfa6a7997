"""The diary of a broker: notes become entries, log lines and counts; a topic keeps the entries."""

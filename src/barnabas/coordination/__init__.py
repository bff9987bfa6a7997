"""A small tree of nodes with watches and sessions, on which brokers agree."""

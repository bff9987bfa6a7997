"""Moves of partitions between brokers: what a plan costs, proposals, throttles, progress."""

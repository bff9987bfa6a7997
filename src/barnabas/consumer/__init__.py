"""Internals of the consumer: subscription, fetcher, positions, group membership."""

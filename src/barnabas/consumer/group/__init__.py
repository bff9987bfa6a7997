"""Membership in a group: joining, heartbeats, rebalances, commits."""

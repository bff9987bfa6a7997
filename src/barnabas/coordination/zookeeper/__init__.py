"""Coordination by a ZooKeeper ensemble."""

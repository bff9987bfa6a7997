"""Cluster metadata: every broker's view of it, and the tree in which it is stored."""

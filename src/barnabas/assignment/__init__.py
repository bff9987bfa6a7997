"""Partition assignors: who of a group reads what, used by coordinators and consumers."""

"""Partition assignors, used by coordinators and consumers.

`contract` defines an assignor; there is one file for each built-in one, and `embedded` has the data
that classic consumers exchange for them.
"""

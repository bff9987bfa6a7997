"""Partition assignors: who of a group reads what, used by coordinators and consumers.

`contract` says what an assignor is; there is one file for each of those that come with the
package, and `embedded` has the data that classic consumers exchange for them.
"""

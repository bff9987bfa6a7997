"""Whole clusters in one thread, on a virtual clock, network and disk, replayable by seed."""

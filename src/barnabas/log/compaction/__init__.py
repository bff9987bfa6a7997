"""Compaction: of each key only the newest record stays, at its offset."""

"""Compaction: only the newest record of each key is kept, at its offset."""

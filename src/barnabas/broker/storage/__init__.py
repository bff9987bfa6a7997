"""A broker's logs on its disks: loading, retention, compaction, moves and failures."""

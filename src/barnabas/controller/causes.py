"""Why the controller elects leaders, changes ISRs and takes replicas offline."""

from __future__ import annotations

from enum import Enum


class Cause(Enum):
    """The values are those of labels in metrics."""

    FIRST = "first"
    """The partition is new."""
    BROKER_GONE = "broker-gone"
    RESTARTED = "restarted"
    """A broker left or restarted while there was no controller: it may have lost records."""
    DIRECTORY_FAILED = "directory-failed"
    """A broker reported that it cannot serve a replica: its disk failed or is full."""
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    DELETION = "deletion"
    PREFERRED = "preferred"
    REASSIGNMENT = "reassignment"
    UNCLEAN = "unclean"
    """No in-sync replica was alive, and the topic allows that records are lost."""

"""Segments on their way into a log or out of it: what their names say, and where a crash left them.

    .cleaned   written by compaction, not yet in use
    .swap      takes the place of the segments that it was made of
    .deleted   out of the log, unlinked when no reader can be at it

`compaction/steps.py` draws the order in which names change.
"""

from __future__ import annotations

from barnabas.log.files import Files
from barnabas.log.producer_snapshot import SNAPSHOT
from barnabas.log.scan import headers
from barnabas.log.segment import DELETED, LOG, SUFFIXES, is_segment_file

CLEANED, SWAP = ".cleaned", ".swap"


def base_of(name: str) -> int:
    """Return the base offset in the name of a segment's file."""
    return int(name[:20])


def finish_replacements(files: Files, directory: str) -> list[str]:
    """Finish or undo what a crash cut short (.tmp, .deleted, .cleaned, .swap).

    Returns the names of segments' files that are left.
    """
    names = []
    for name in files.list(directory):
        if name.endswith(".tmp"):
            files.unlink(f"{directory}/{name}")
        elif is_segment_file(name):
            names.append(name)
    temporary = [name for name in names if name.endswith((DELETED, CLEANED, SWAP))]
    if not temporary:
        return names
    cleaned = [base_of(name) for name in temporary if name.endswith(CLEANED)]
    unfinished = min(cleaned, default=None)
    swaps = []
    for name in temporary:
        if name.endswith(SWAP) and (unfinished is None or base_of(name) < unfinished):
            swaps.append(name)
        else:
            files.unlink(f"{directory}/{name}")
    logs = [name for name in swaps if name.endswith(LOG + SWAP)]
    if logs:
        low = min(map(base_of, logs))
        high = max(_next_offset(files, directory, name) for name in logs)
        for name in names:
            # Snapshots too: see `PartitionLog.replace`.
            if name.endswith((*SUFFIXES, SNAPSHOT)) and low <= base_of(name) < high:
                files.unlink(f"{directory}/{name}")
    bases = {base_of(name) for name in logs}
    for name in swaps:
        if base_of(name) not in bases:
            # Its batches are in place already, or were removed: whose index this is cannot be
            # told, so the segment gets new ones.
            for path in (f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}"):
                files.unlink(path)
            continue
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")
    files.flush_dir(directory)
    return [name for name in files.list(directory) if is_segment_file(name)]


def _next_offset(files: Files, directory: str, name: str) -> int:
    file = files.open(f"{directory}/{name}")
    try:
        following = base_of(name)
        for _, header in headers(file, 0, file.size()):
            following = header.next_offset
        return following
    finally:
        file.close()

"""Opens a partition's directory: recovers it if needed, creates it if missing."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config.topic import TopicOptions
from barnabas.log import partition_metadata
from barnabas.log.file_pool import FilePool
from barnabas.log.recovery import Found, Recovery
from barnabas.model.ids import Uuid


class Opened(NamedTuple):
    """The state of a log, from its directory and the checkpoints."""

    found: Found
    topic_id: Uuid | None
    created: bool
    settled: bool  # whether all that was found is surely flushed
    recovery_point: int  # as checkpointed
    cleaned_offset: int


def find(
    pool: FilePool,
    directory: str,
    options: TopicOptions,
    now_ms: int,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    cleaned_offset: int,
    topic_id: Uuid | None,
    repair: bool,
) -> Opened:
    """Return the log in a directory, a new one if there is none."""
    files = pool.files
    created = not files.is_dir(directory)
    if created:
        files.make_dirs(directory)
        if topic_id is not None:
            path = f"{directory}/{partition_metadata.NAME}"
            files.write(path, partition_metadata.encode(topic_id))
    known_id = topic_id if created else partition_metadata.read(files, directory)
    recovery = Recovery(
        files,
        directory,
        clean=clean or created,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_offset=cleaned_offset,
        index_interval_bytes=options.index_interval_bytes,
        now_ms=now_ms,
        repair=repair,
    )
    preallocate = options.segment_bytes if options.preallocate else 0
    found = recovery.create(preallocate) if created else recovery.load()
    for segment in found.segments:
        segment.adopt(pool)
    # What another life left behind may be as unflushed as what is new.
    settled = clean and not created
    return Opened(found, known_id, created, settled, recovery_point, cleaned_offset)

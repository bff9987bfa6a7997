"""How fast a log is compacted: the kernels on memory, and a whole compaction on the disk.

    python bench/compaction.py [--megabytes 64] [--value-bytes 100] [--batch 50] [--codec none]

Prints megabytes of the log per second. Keys are drawn from a tenth as many as there are records,
so that most of the log goes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from random import Random

from barnabas import kernels
from barnabas.config.topic import TopicOptions
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.log.compaction.scheduler import examine
from barnabas.log.compaction.steps import Means, compact, run
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch

NOW_MS = 1_700_000_000_000
MEANS = Means(128 * 1024 * 1024, 0.9, 512 * 1024)


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds the work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def make_batches(arguments: argparse.Namespace) -> list[bytes]:
    """Return produced batches of about so many megabytes."""
    random = Random(1)
    wanted = arguments.megabytes * 1_000_000
    key_count = max(wanted // (arguments.value_bytes + 20) // 10, 1)
    batches, size = [], 0
    while size < wanted:
        rows = [
            (NOW_MS, b"key-%012d" % random.randrange(key_count), random.randbytes(16) * 99)
            for _ in range(arguments.batch)
        ]
        rows = [(at, key, value[: arguments.value_bytes]) for at, key, value in rows]
        batches.append(build_batch(rows, arguments.codec))
        size += len(batches[-1])
    return batches


def bench_kernels(data: bytes, offsets: int) -> None:
    """Print the speed of the two walks over plain batches in memory."""
    offset_map = OffsetMap(MEANS.map_bytes, MEANS.load_factor, offsets)
    took = timed(lambda: offset_map.put_batches(data, 0, len(data), 0))
    print(f"keys into the map    {len(data) / took / 1e6:8.0f} MB/s  ({len(offset_map)} keys)")
    out = bytearray(2 * len(data))
    took = timed(
        lambda: kernels.filter_batches(
            offset_map.slots, data, 0, len(data), out, 0, offsets, NOW_MS, NOW_MS, b""
        )
    )
    print(f"batches through it   {len(data) / took / 1e6:8.0f} MB/s")


def bench_log(batches: list[bytes], directory: str) -> bytes:
    """Print the speed of a compaction on disk; return the log's batches as they were."""
    options = TopicOptions.parse(
        {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
    )
    path = f"{directory}/t-0"
    log = PartitionLog.open(FilePool(DiskFiles()), path, TopicPartition("t", 0), options, NOW_MS)
    for batch in batches:
        log.append_as_leader(bytearray(batch), 0, NOW_MS)
    log.roll(NOW_MS)
    log.set_high_watermark(log.log_end_offset)
    log.flush(NOW_MS)
    log.checkpointed_recovery_point = log.recovery_point
    data = b"".join(segment.file.get().pread(segment.size_bytes, 0) for segment in log.segments)
    found = examine(log, NOW_MS)
    assert found is not None
    steps = compact(log, found.first_dirty, found.end, MEANS, NOW_MS, unlink_later=_ignore)
    took = timed(lambda: run(steps))
    print(
        f"a whole compaction   {len(data) / took / 1e6:8.0f} MB/s  "
        f"({len(data) / 1e6:.0f} MB, {100 * log.size_bytes / len(data):.0f} % stay)"
    )
    log.release()
    return data


def _ignore(paths: list[str]) -> None:
    """Leave the files to the temporary directory's end."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Measure log compaction.")
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--batch", type=int, default=50, help="records in a batch")
    parser.add_argument("--codec", default="none")
    arguments = parser.parse_args()
    print(f"kernels: {kernels.NAME}")
    with tempfile.TemporaryDirectory() as directory:
        batches = make_batches(arguments)
        data = bench_log(batches, directory)
    if arguments.codec == "none":
        bench_kernels(data, len(batches) * arguments.batch)


if __name__ == "__main__":
    main()

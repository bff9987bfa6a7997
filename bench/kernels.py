"""How fast the kernels are: checksum, encode, validate, decode, to Arrow.

    python bench/kernels.py [--quick]

Prints the best of some rounds for both twins, on batches of 16 KB and 1 MB of records with a
10-byte key and a 100-byte value. The machine may be busy: compare lines of one run, not runs.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from types import ModuleType as Kernels

from barnabas.kernels.batch_header import HEADER_SIZE

T0 = 1_700_000_000_000


def best(work: Callable[[], object], seconds: float) -> float:
    """Return the shortest time of one call, in seconds, over as many as fit."""
    shortest = float("inf")
    deadline = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        work()
        end = time.perf_counter()
        shortest = min(shortest, end - start)
        if end > deadline:
            return shortest


def measure(kernels: Kernels, size: int, seconds: float) -> dict[str, str]:
    """Return the rates of one set of kernels on batches of about `size` bytes."""
    count = size // 118
    rows = [(T0 + i, b"key-%06d" % i, bytes(100)) for i in range(count)]
    key, value = rows[0][1:]

    def append() -> bytearray:
        builder = kernels.BatchBuilder()
        add = builder.append
        for index in range(count):
            add(T0 + index, key, value)
        return builder.finish()

    def append_many() -> bytearray:
        builder = kernels.BatchBuilder()
        builder.append_many(rows)
        return builder.finish()

    batch = append_many()
    end = len(batch)
    columns = kernels.records_to_columns(batch, HEADER_SIZE, end, count, 0, T0)

    def append_columns() -> bytearray:
        builder = kernels.BatchBuilder()
        builder.append_columns(columns.timestamps, columns.keys, columns.values, 0, count)
        return builder.finish()

    def iterate() -> int:
        total = 0
        for record in kernels.read_records(batch, HEADER_SIZE, end, count, 0, T0):
            total += record.offset
        return total

    def take() -> int:
        reader = kernels.read_records(batch, HEADER_SIZE, end, count, 0, T0)
        total = 0
        while records := reader.take(500):
            total += len(records)
        return total

    def to_columns() -> object:
        return kernels.records_to_columns(batch, HEADER_SIZE, end, count, 0, T0)

    records_per_second = {
        "append": append,
        "append_many": append_many,
        "append_columns": append_columns,
        "inspect (CRC and walk)": lambda: kernels.inspect_batch(batch),
        "iterate": iterate,
        "take(500)": take,
        "records_to_columns": to_columns,
    }
    rates = {
        name: f"{count / best(work, seconds) / 1e6:8.2f} M records/s"
        for name, work in records_per_second.items()
    }
    rates["crc32c"] = f"{end / best(lambda: kernels.crc32c(batch), seconds) / 1e9:8.2f} GB/s"
    scan = best(lambda: kernels.scan_batch(batch), seconds)
    rates["scan_batch"] = f"{scan * 1e9:8.0f} ns"
    assign = best(lambda: kernels.assign_offsets(batch, 0, 7, 1), seconds)
    rates["assign_offsets"] = f"{assign * 1e9:8.0f} ns"
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="less time for each line")
    seconds = 0.05 if parser.parse_args().quick else 0.5
    for name in ("cython", "python"):
        try:
            kernels = importlib.import_module(f"barnabas.kernels.{name}")
        except ModuleNotFoundError:
            print(f"{name}: not compiled")
            continue
        for size in (16_384, 1_000_000):
            print(f"{name}, batch of {size} bytes")
            for line, rate in measure(kernels, size, seconds).items():
                print(f"  {line:<24}{rate}")


if __name__ == "__main__":
    main()

"""The values of the records that a measurement sends."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

from barnabas.cli.perf.plan import Plan
from barnabas.model.errors import ConfigError

VARIANTS_MAX = 64
VARIANTS_SIZE_MAX = 1 << 20
"""So many random payloads take turns: making one for each record would be measured, too."""

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def payloads(plan: Plan) -> Iterator[bytes]:
    """Return payloads without end: of a file, numbers, or random letters of the record size."""
    if plan.payload_file is not None:
        texts = read_payloads(plan.payload_file, plan.payload_delimiter)
        chosen = random.Random(0)
        return iter(lambda: chosen.choice(texts), None)
    if plan.monotonic:
        return (b"%d" % number for number in count())
    letters = random.Random(0)
    size = plan.record_size
    variants = min(max(VARIANTS_SIZE_MAX // max(size, 1), 1), VARIANTS_MAX)
    return cycle([bytes(letters.choices(_LETTERS, k=size)) for _ in range(variants)])


def read_payloads(path: str, delimiter: str = "\n") -> list[bytes]:
    """Return the payloads in a file; raise ConfigError if there are none."""
    try:
        data = Path(path).read_bytes()
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        raise ConfigError(f"--payload-file {path}: {reason}") from failure
    pieces = data.split(delimiter.encode())
    if pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise ConfigError(f"--payload-file {path}: the file is empty")
    return pieces

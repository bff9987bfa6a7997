"""Runs one task of a mirror, pickled on standard input; its result goes to standard output.

    python -m tests.system.mirror_task STEP

It kills itself just before the given step of its transactions; 0: not at all.
"""

from __future__ import annotations

import pickle
import sys

from tests.system.dying import STEPS, die_before

from barnabas.mirror.tasks import run_task

ALL_STEPS = ("start", *STEPS, "send_offsets_to_transaction", "stop")

if __name__ == "__main__":
    die_before(int(sys.argv[1]), ALL_STEPS)
    result = run_task(pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(pickle.dumps(result))

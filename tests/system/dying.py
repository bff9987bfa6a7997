"""A `barnabas` command that kills itself just before a given step of its transactions.

    python dying.py STEP COMMAND [OPTION]...

Steps are counted over what the producer is asked to do: begin, send, commit.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from barnabas.aio import AIOKafkaProducer
from barnabas.cli.main import main

STEPS = ("begin_transaction", "send_many", "commit_transaction")


def die_before(step: int, steps: Sequence[str] = STEPS) -> None:
    """Count calls of the producer's methods `steps`, and die before the one of this number."""
    left = step

    def counted(method: Any) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return await method(*arguments, **options)

        return call

    for name in steps:
        setattr(AIOKafkaProducer, name, counted(getattr(AIOKafkaProducer, name)))


if __name__ == "__main__":
    die_before(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))

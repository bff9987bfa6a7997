"""Which data directories may be used by workers, and which by one broker alone.

A directory that belongs to the other kind is refused, and nothing in it is touched: its topics
would look lost, and what was stored beside them would be in two places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from barnabas.model.errors import ConfigError

_IDENTITY = "meta.properties"
_WORKER = re.compile("worker-([1-9][0-9]*)")


def workers_in(directory: str) -> list[int]:
    """Return the numbers of the workers that have data in a directory."""
    path = Path(directory)
    if not path.is_dir():
        return []
    found = [(_WORKER.fullmatch(each.name), each) for each in path.iterdir()]
    return sorted(int(name[1]) for name, each in found if name and (each / _IDENTITY).exists())


def check_for_workers(directories: Sequence[str], count: int) -> None:
    """Raise ConfigError unless `count` workers may keep their data below these directories."""
    for directory in directories:
        if (Path(directory) / _IDENTITY).exists():
            raise ConfigError(
                f"log.dirs={directory}: a single broker has its data there; start it without "
                "--workers, or choose another directory and move its topics with `barnabas mirror`"
            )
        more = [number for number in workers_in(directory) if number > count]
        if more:
            raise ConfigError(
                f"log.dirs={directory}: worker {more[-1]} has data there; start it with "
                f"--workers {more[-1]}, or move its replicas with `barnabas reassign` and then "
                f"delete worker-{more[-1]}"
            )


def check_for_one(directories: Sequence[str]) -> None:
    """Raise ConfigError if workers have their data below one of these directories."""
    for directory in directories:
        numbers = workers_in(directory)
        if numbers:
            raise ConfigError(
                f"log.dirs={directory}: {len(numbers)} workers have their data there; start it "
                f"with --workers {numbers[-1]}, or choose another directory"
            )

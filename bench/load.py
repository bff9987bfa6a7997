"""The benchmark's load as Python sees it: `load.c` on librdkafka, or confluent-kafka in its place.

`Load.build()` compiles the C program once per change into `.deps/`. Without a compiler or the
headers of librdkafka the same acts run on `load_python.py`, in one process per client; the report
names which one ran, since the Python client is often the slower side.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".deps"


@dataclass(frozen=True)
class Load:
    """A load generator: the command that runs it, and what to call it."""

    name: str
    argv: tuple[str, ...]

    @classmethod
    def build(cls) -> Load:
        """Compile the C program, or fall back and say why in the name."""
        source, program = HERE / "load.c", CACHE / "load"
        fallback = (sys.executable, str(HERE / "load_python.py"))
        if shutil.which("cc") is None:
            return cls("confluent-kafka (no C compiler here)", fallback)
        CACHE.mkdir(exist_ok=True)
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            flags = ["-O2", "-o", str(program), str(source), "-lrdkafka", "-lpthread"]
            done = subprocess.run(["cc", *flags], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return cls("confluent-kafka (librdkafka's headers are not installed)", fallback)
        return cls("C on librdkafka", (str(program),))

    def run(self, act: str, *arguments: object, **settings: object) -> Any:
        """Run one act to its end; settings are librdkafka's, with `_` for the dot."""
        given = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        done = subprocess.run(
            [*self.argv, act, *map(str, arguments), *given],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"load {act} failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

"""A child process of the demo: its output is read, and it ends when the demo does.

It is in a process group of its own, so that Ctrl-C reaches only the demo, which then stops its
children in an order that loses nothing.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.pipeline.errors import PipelineError


class Child:
    """A running `barnabas` command; its output waits in `lines`, its stderr is a file."""

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self._name = f"barnabas {words[0]}"
        self._log = log
        self._asked_to_end = False
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                process_group=0,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    @property
    def failure(self) -> str | None:
        """Why it failed, if it did, and was not stopped."""
        code = self._process.poll()
        if code in (None, 0) or self._asked_to_end:
            return None
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        return f"{self._name} exited with {code}: {lines[-1] if lines else 'no output'}"

    def wait_for(self, phrase: str, timeout_s: float) -> str:
        """Return the first line with a phrase."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            try:
                line = self.lines.get(timeout=0.1)
            except queue.Empty:
                if not self.is_running:
                    raise PipelineError(self.failure or f"{self._name} exited") from None
                continue
            if phrase in line:
                return line
        raise PipelineError(f"{self._name} was not ready in {timeout_s:.0f} s; see {self._log}")

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stop it in order; kill it after the deadline."""
        if self.is_running:
            self._asked_to_end = True
            self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """Kill it, without waiting."""
        self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.put(line.rstrip("\n"))

"""A real Prometheus: found, configured, started, and asked over its HTTP API."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from tools.processes import free_port

DEADLINE_S = 120.0
UNPACKED = Path(__file__).parents[2] / ".deps" / "prometheus" / "usr" / "bin"


def program(name: str) -> str:
    """Return the path of a program of Debian's package; skip the test without it."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    if found is None:
        pytest.skip(f"{name} is missing: make deps unpacks Debian's package prometheus")
    return found


class Job(NamedTuple):
    """What is scraped: targets with the labels that each gets."""

    name: str
    path: str
    targets: dict[str, dict[str, str]]


class Sample(NamedTuple):
    """One series of an answer, and its value."""

    labels: dict[str, str]
    value: float

    @property
    def text(self) -> str:
        """The series as Grafana shows it to the regular expression of a variable."""
        labels = dict(self.labels)
        name = labels.pop("__name__", "")
        inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
        return f"{name}{{{inside}}} {self.value:g}"


class Prometheus:
    """One server with its data in a folder; `with` starts and stops it."""

    def __init__(self, folder: Path, jobs: Sequence[Job], rules: Sequence[Path] = ()) -> None:
        self._program = program("prometheus")
        self._folder = folder
        self._config = folder / "prometheus.yml"
        # JSON is YAML, too.
        self._config.write_text(
            json.dumps(
                {
                    "global": {
                        "scrape_interval": "1s",
                        "scrape_timeout": "1s",
                        "evaluation_interval": "1s",
                    },
                    "rule_files": [str(path) for path in rules],
                    "scrape_configs": [
                        {
                            "job_name": job.name,
                            "metrics_path": job.path,
                            "static_configs": [
                                {"targets": [target], "labels": labels}
                                for target, labels in job.targets.items()
                            ],
                        }
                        for job in jobs
                    ],
                }
            )
        )
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Prometheus:
        self._port = free_port()
        command = [
            self._program,
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--log.level=warn",
        ]
        errors = self._folder / "prometheus.err"
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(command, stderr=stderr)
        try:
            self.wait_for(self._is_ready, lambda: f"ready: {errors.read_text()}")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, "it has ended"
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError):
            return False

    def query(self, expression: str) -> list[Sample]:
        """Evaluate an expression now; fail with what Prometheus says against it."""
        query = urlencode({"query": expression})
        try:
            url = f"http://127.0.0.1:{self._port}/api/v1/query?{query}"
            with urlopen(url, timeout=DEADLINE_S) as answer:
                data = json.load(answer)["data"]
        except HTTPError as refusal:
            pytest.fail(f"{expression}: {refusal.read().decode()}")
        found: list[Any] = data["result"]
        if data["resultType"] == "scalar":
            return [Sample({}, float(found[1]))]
        return [Sample(each["metric"], float(each["value"][1])) for each in found]

    def value(self, expression: str) -> float | None:
        """Return the one value of an expression; None if it has no series."""
        found = self.query(expression)
        assert len(found) <= 1, (expression, found)
        return found[0].value if found else None

    def wait_for_value(self, expression: str, wanted: float) -> None:
        """Wait until an expression has a value: what happened is seen with the next scrape."""
        self.wait_for(
            lambda: self.value(expression) == wanted,
            lambda: f"{expression}: {self.value(expression)} instead of {wanted}",
        )

    def wait_for(self, holds: Any, what: Any) -> None:
        """Wait until something holds."""
        end = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > end:
                pytest.fail(f"not in {DEADLINE_S:g} s: {what()}")
            time.sleep(0.1)

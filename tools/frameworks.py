"""Frameworks and clients of others for `make interop`, each in a folder of its own in `.deps`.

`fetch` installs one part once; later calls only look. Where it cannot be had, Unavailable says why
in one line; tests skip with it.

    python -m tools.frameworks            fetch all, and say how each went
    python -m tools.frameworks go         fetch one
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.apache_kafka import LOGGING_VERSION, RELEASES, ROOT, Unavailable, copy_jars

SOURCES = ROOT / "tests" / "interop" / "frameworks"
CACHE = ROOT / ".deps"
NODE_PACKAGES = ("@platformatic/kafka@1.35.0",)  # the last one that runs on Node 20
KAFKA = RELEASES["4"]
JARS = [
    ("org.apache.kafka", "kafka-streams", KAFKA),
    ("org.apache.kafka", "connect-runtime", KAFKA),
    ("org.apache.kafka", "connect-file", KAFKA),
    ("org.apache.kafka", "connect-mirror", KAFKA),
    ("org.slf4j", "slf4j-simple", LOGGING_VERSION),
]


def fetch(part: str) -> Path:
    """Return the folder of a part, after installing it the first time."""
    home = CACHE / FOLDERS[part]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        # Parallel test workers ask at the same time: one fetches, the others find it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        PARTS[part](home)
    return home


def _python(home: Path) -> None:
    """Make an environment: its packages contradict those of the checkout's."""
    wanted = (SOURCES / "python" / "requirements.txt").read_text()
    stamp = home / "installed.txt"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    uv = Path(sys.executable).with_name("uv")
    environment = home / "venv"
    _run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, environment], home)
    requirements = SOURCES / "python" / "requirements.txt"
    python = environment / "bin" / "python"
    _run([uv, "pip", "install", "--quiet", "--python", python, "--requirement", requirements], home)
    stamp.write_text(wanted)


def _node(home: Path) -> None:
    stamp = home / "installed.txt"
    wanted = "\n".join(NODE_PACKAGES)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    npm = _program("npm")
    options = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", str(home)]
    _run([npm, "install", *options, *NODE_PACKAGES], home)
    stamp.write_text(wanted)


def _go(home: Path) -> None:
    """Download the modules and build the program; what is built is kept in Go's own cache."""
    _run([_program("go"), "build", "-o", home / "client", "."], SOURCES / "go", go_environment())


def go_environment() -> Mapping[str, str]:
    """Return where Go keeps modules and what it has built."""
    home = CACHE / FOLDERS["go"]
    return {
        "GOMODCACHE": str(home / "modules"),
        "GOCACHE": str(home / "built"),
        "GOFLAGS": "-modcacherw -buildvcs=false",
    }


def _rust(home: Path) -> None:
    cargo = _program("cargo")
    arguments = ["--quiet", "--release", "--target-dir", str(home / "target")]
    _run([cargo, "build", *arguments], SOURCES / "rust")


def _java(home: Path) -> None:
    _program("java")
    if not (home / f"jars-{KAFKA}").is_dir():
        copy_jars(JARS, home / f"jars-{KAFKA}", f"Kafka Streams and Connect {KAFKA}")


FOLDERS = {
    "python": "frameworks",
    "node": "platformatic-kafka",
    "go": "go-clients",
    "rust": "rust-clients",
    "java": "kafka-frameworks",
}
PARTS: Mapping[str, Callable[[Path], None]] = {
    "python": _python,
    "node": _node,
    "go": _go,
    "rust": _rust,
    "java": _java,
}


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def _run(
    command: list[str | Path], directory: Path, environment: Mapping[str, str] | None = None
) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines()
        raise Unavailable(
            f"{Path(command[0]).name} failed: {said[-1] if said else done.returncode}"
        )


def main(parts: list[str]) -> int:
    """Fetch parts, and print a line for each."""
    for part in parts or PARTS:
        try:
            fetch(part)
        except Unavailable as why:
            print(f"{FOLDERS[part]:<18} skipped ({why})")
        else:
            print(f"{FOLDERS[part]:<18} present")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Build what is released, in dist/, and try it as its users will: each step is a line.

python -m tools.dist                       on every Python of this machine that Barnabas supports
python -m tools.dist --python /usr/bin/python3.12

One sdist, and a wheel for each minor version of Python, built from that sdist with a C compiler.
Into empty environments come each wheel, and the sdist without a compiler; there the smoke test
(packaging/smoke.py) uses the commands, a broker and the clients.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
OLDEST = (3, 11)
WHEEL_MAX = 5_000_000
SMOKE = ROOT / "packaging" / "smoke.py"
NO_COMPILER = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/cc"}
COMPILER = {"BARNABAS_REQUIRE_KERNELS": "1"}


class Failure(Exception):
    """A step that went wrong."""


class Python(NamedTuple):
    """An interpreter, and its version."""

    path: Path
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.path})"


def candidates() -> Iterator[Path]:
    """Yield where interpreters may be: on the path, those of pyenv and uv."""
    for place in os.environ.get("PATH", "").split(os.pathsep):
        if place:
            yield from sorted(Path(place).glob("python3*"))
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    for versions in (pyenv / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from sorted(versions.glob("*/bin/python3"))


def pythons(paths: Iterable[Path]) -> list[Python]:
    """Return the interpreters at these places that Barnabas supports, each once, newest first."""
    asking = (
        "import os, sys; "
        "print(os.path.realpath(os.path.join(sys.base_prefix, 'bin', "
        "'python%d.%d' % sys.version_info[:2])), *sys.version_info[:3])"
    )
    found: dict[Path, Python] = {}
    for path in paths:
        if not re.fullmatch(r"python3(\.\d+)?", path.name) or not os.access(path, os.X_OK):
            continue
        asked = subprocess.run([path, "-I", "-c", asking], capture_output=True, text=True)
        if asked.returncode:
            continue  # a shim of pyenv without a version behind it
        real, *version = asked.stdout.split()
        major, minor, micro = map(int, version)
        if (major, minor) >= OLDEST and Path(real).exists():
            found[Path(real)] = Python(Path(real), (major, minor, micro))
    return sorted(found.values(), key=lambda python: python.version, reverse=True)


def run(*words: object, environment: Mapping[str, str] | None = None, where: Path = ROOT) -> str:
    """Return what a program prints; raise Failure with the end of it if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=where,
        # What is installed is tried, not this checkout.
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-25:])
        raise Failure(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{end}")
    return done.stdout


def copy_tracked(target: Path) -> None:
    """Copy the files that git knows, as they are now."""
    for name in run("git", "ls-files", "-z").split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


class Release:
    """The files in dist/, and how they are made and tried."""

    def __init__(self, uv: str, scratch: Path) -> None:
        self._uv = uv
        self._scratch = scratch
        self._began_s = time.monotonic()
        self.sdist = DIST
        self.version = ""

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self._began_s:5.0f} s  {text}", flush=True)

    def build_sdist(self, python: Python) -> None:
        for old in [*DIST.glob("barnabas-*.whl"), *DIST.glob("barnabas-*.tar.gz")]:
            old.unlink()
        source = self._scratch / "source"
        copy_tracked(source)  # setuptools leaves files where it works, and takes all that it finds
        run(self._uv, "build", "-q", "--sdist", "--python", python.path, "--out-dir", DIST, source)
        [self.sdist] = DIST.glob("barnabas-*.tar.gz")
        self.version = self.sdist.name.removeprefix("barnabas-").removesuffix(".tar.gz")
        self.tell(f"built {self.sdist.name}, {self.sdist.stat().st_size / 1e6:.1f} MB")

    def build_wheel(self, python: Python) -> Path:
        """Build a wheel from the sdist alone, and look into it."""
        before = set(DIST.glob("*.whl"))
        run(
            *(self._uv, "build", "-q", "--wheel", "--python", python.path, "--out-dir", DIST),
            self.sdist,
            environment=COMPILER,
        )
        [wheel] = set(DIST.glob("*.whl")) - before
        check_wheel(wheel, self.version)
        self.tell(f"built {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        return wheel

    def check_metadata(self) -> None:
        """Let twine look at what an index would reject."""
        words = (self._uv, "tool", "run", "-q", "twine", "check", "--strict")
        run(*words, *sorted(DIST.glob("barnabas-*")))
        self.tell("twine finds nothing to complain of")

    def try_installed(
        self, python: Python, file: Path, kernels: str, environment: Mapping[str, str]
    ) -> None:
        """Install a file into an empty environment, and use what is there."""
        place = self._scratch / f"{python.path.name}-{file.suffix[1:]}-{time.monotonic_ns()}"
        run(self._uv, "venv", "-q", "--seed", "--python", python.path, place)
        own = place / "bin" / "python"
        words = ("-m", "pip", "install", "-q", "--disable-pip-version-check", file)
        run(own, *words, environment=environment)
        run(own, "-I", SMOKE, kernels, self.version, environment=environment, where=place)
        shutil.rmtree(place)
        self.tell(f"{python}: {file.name} works, on the {kernels} kernels")

    def try_runners(self, wheel: Path, python: Python) -> None:
        """Run the command from the wheel with uvx and pipx, which install nothing for good."""
        wanted = f"barnabas {self.version}"
        tool = (self._uv, "tool", "run", "-q")
        homes = {"PIPX_HOME": str(self._scratch), "PIPX_BIN_DIR": str(self._scratch / "bin")}
        uvx = run(*tool, "--python", python.path, "--from", wheel, "barnabas", "--version")
        pipx = run(
            *(*tool, "pipx", "run", "--python", python.path, "--spec", wheel),
            *("barnabas", "--version"),
            environment=homes,
        )
        for said in (uvx, pipx):
            if said.splitlines()[-1] != wanted:
                raise Failure(f"{wanted!r} was expected, not {said!r}")
        self.tell("uvx and pipx run the wheel")


def check_wheel(wheel: Path, version: str) -> None:
    """Raise Failure if something is in a wheel that should not be, or is missing."""
    size = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        said = message_from_bytes(opened.read(metadata))["Version"]
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    allowed = {"barnabas", "pyspark_barnabas", "pyspark_barnabas_log", f"barnabas-{version}.data"}
    sources = {name.removesuffix(".pyx") for name in names if name.endswith(".pyx")}
    compiled = {name.split(".")[0] for name in names if name.endswith(".so")}
    complaints = [
        (size > WHEEL_MAX, f"{size:,} bytes are more than {WHEEL_MAX:,}"),
        (said != version, f"its version is {said}, that of the sdist {version}"),
        (tops - allowed, f"unexpected: {tops - allowed}"),
        (sources - compiled, f"not compiled: {sorted(sources - compiled)}"),
        (any(name.endswith(".c") for name in names), "it has C that Cython wrote"),
        ("barnabas/py.typed" not in names, "barnabas/py.typed is missing"),
        (not any(name.endswith("/man1/barnabas.1") for name in names), "no manual page"),
        (not any("console/static/" in name for name in names), "no files for browsers"),
    ]
    for is_so, text in complaints:
        if is_so:
            raise Failure(f"{wheel.name}: {text}")


def main() -> int:
    arguments = argparse.ArgumentParser(description="Build and try what is released.")
    arguments.add_argument(
        "--python", type=Path, action="append", help="an interpreter (default: all)"
    )
    given = arguments.parse_args().python
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    if uv is None:
        print("dist: uv is not installed: make install", file=sys.stderr)
        return 1
    found = pythons(given or candidates())
    if not found:
        print("dist: no Python 3.11 or later found", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="barnabas-dist-") as scratch:
        release = Release(uv, Path(scratch))
        try:
            release.build_sdist(found[0])
            wheels: dict[tuple[int, int], Path] = {}
            for python in found:
                minor = python.version[:2]
                if minor not in wheels:
                    wheels[minor] = release.build_wheel(python)
                release.try_installed(python, wheels[minor], "cython", NO_COMPILER)
                release.try_installed(python, release.sdist, "python", NO_COMPILER)
            release.try_installed(found[0], release.sdist, "cython", COMPILER)
            release.try_runners(wheels[found[0].version[:2]], found[0])
            release.check_metadata()
        except Failure as failure:
            print(f"dist: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A cluster as `barnabas security init` makes it: its directory, its broker, and its clients."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.processes import free_port, wait_for_line

from barnabas.config.properties import read_properties

BARNABAS = str(Path(sys.executable).parent / "barnabas")
TIMEOUT_S = 120


class SecuredCluster:
    """A directory of files, and a broker that was started with them."""

    def __init__(self, folder: Path, *words: str, zookeeper: str | None = None) -> None:
        """Create the directory, with more words of the command."""
        self.folder = folder
        self.path = folder / "security"
        self.port = free_port(run=4)  # `init` gives brokers consecutive ones
        self.said = ""
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        where = [] if zookeeper is None else ["--zookeeper", zookeeper]
        self.command("security", "init", "security", "--port", str(self.port), *where, *words)

    def command(self, *words: str, code: int = 0) -> str:
        """Run a command in the folder as users do; return what it prints."""
        done = subprocess.run(
            [BARNABAS, *words], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        self.said += done.stdout + done.stderr
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def start(self, number: int = 1) -> None:
        """Start a broker, and wait until it is ready."""
        words = [BARNABAS, "start", "--secure", "--id", str(number)]
        with self.log(number).open("wb") as output:
            process = subprocess.Popen(words, cwd=self.folder, stdout=output, stderr=output)
        self.processes[number] = process
        wait_for_line(process, self.log(number), "is ready on", TIMEOUT_S)

    def log(self, number: int = 1) -> Path:
        """Return the file with everything that a broker prints."""
        return self.folder / f"broker-{number}.out"

    def stop(self) -> None:
        """Stop all brokers."""
        for process in self.processes.values():
            process.terminate()
        for number, process in self.processes.items():
            process.wait(TIMEOUT_S)
            self.said += self.log(number).read_text()
        self.processes.clear()

    def secrets(self) -> set[str]:
        """Return every password, secret and key in the directory."""
        found = {each.read_text().strip() for each in self.path.rglob("password")}
        shared = read_properties((self.path / "cluster.properties").read_text())
        found |= {shared["delegation.token.secret.key"], shared["password.encoder.secret"]}
        login = shared["listener.name.sasl_ssl.plain.sasl.jaas.config"]
        found |= set(re.findall(r'password="(\w+)"', login))
        for pem in [*self.path.rglob("*.pem"), self.path / "ca.key"]:
            found.add(pem.read_text().splitlines()[1])  # the key's first line
        for user in self.path.rglob("users/*.json"):
            found |= set(re.findall(r"stored_key=([^,]+)", user.read_text()))
        return found

    def contents(self) -> dict[str, bytes]:
        """Return every file of the directory."""
        return {
            str(each.relative_to(self.path)): each.read_bytes()
            for each in self.path.rglob("*")
            if each.is_file()
        }

    def client(self, name: str = "app") -> Path:
        """Return the directory of a client."""
        return self.path / "clients" / name

    def stranger(self) -> Path:
        """Return a copy of the first client's directory, with a wrong password."""
        home = self.folder / "stranger"
        if not home.exists():
            shutil.copytree(self.client(), home)
            right = (home / "password").read_text().strip()
            for each in home.iterdir():
                text = each.read_text().replace(right, "guessed")
                each.write_text(text.replace(str(self.client()), str(home)))
        return home


def program(home: Path, name: str, code: int | None = 0) -> str:
    """Run a client's program; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", f"{name}_example.py"],
        cwd=home,
        env=dict(os.environ, PYSPARK_PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert code is None or done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def kcat(home: Path, *words: str, sent: str | None = None, code: int = 0) -> str:
    """Run kcat with a client's options; return what it prints."""
    done = subprocess.run(
        ["kcat", "-F", "librdkafka.conf", *words],
        cwd=home,
        input=sent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr

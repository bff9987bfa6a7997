"""Kafka's tools, run one after the other: Apache Kafka's in one virtual machine, ours as forks.

Both are asked with a command line and its standard input, and return exit code and output. Each
command line starts in the same state: ours in a process that has only imported the command.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NamedTuple

from tools.apache_kafka import Distribution

PROGRAM = Path(__file__).with_name("CommandLines.java")
LIMIT_S = 60


class Ran(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str


class ApacheTools:
    """One virtual machine for all tools of a release."""

    def __init__(self, kafka: Distribution, directory: Path) -> None:
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx384m"]
        quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Djava.awt.headless=true"]
        # To take what tools leave for the end of the virtual machine, and to stay in it.
        opened = [
            "-Djava.security.manager=allow",
            *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
        ]
        self._names = kafka.classes
        self._process = subprocess.Popen(
            [
                "java",
                *quick,
                *quiet,
                *opened,
                "-cp",
                f"{kafka.jars}/*",
                str(PROGRAM),
            ],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: text for name, text in os.environ.items() if name != "CLASSPATH"},
        )

    def knows(self, tool: str) -> bool:
        """Return whether this release has the tool."""
        return tool in self._names

    def run(self, words: list[str], input: str) -> Ran:
        """Run one command line; the first word is the tool."""
        tool, *rest = words
        if tool == "zookeeper-shell":  # its script adds this
            rest.insert(0, "-server")
        asked = " ".join(_encoded(text) for text in (self._names[tool], input, *rest))
        code, out, err = _exchange(self._process, asked).split(" ")
        return Ran(int(code), _decoded(out), _decoded(err))

    def close(self) -> None:
        """End it."""
        _end(self._process)


class OurTools:
    """A process that forks for each command line."""

    def __init__(self, directory: Path) -> None:
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("BARNABAS_")
        }
        path = [str(Path(__file__).resolve().parents[2]), environment.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.tool_runners"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment | {"PYTHONPATH": ":".join(filter(None, path))},
        )

    def run(self, words: list[str], input: str) -> Ran:
        """Run one command line; the first word is the tool."""
        asked = " ".join(_encoded(text) for text in (input, *words))
        code, out, err = _exchange(self._process, asked).split(" ")
        return Ran(int(code), _decoded(out), _decoded(err))

    def close(self) -> None:
        """End it."""
        _end(self._process)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode(errors="replace")


def _exchange(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    assert answer, f"it ended with {process.wait()}"
    return answer.removesuffix("\n")


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Fork for each request, and wait for the child."""
    import asyncio  # noqa: F401
    import json  # noqa: F401

    import barnabas.cli.kafka.command
    import barnabas.cli.session  # noqa: F401

    # A terminal or a pipe would block; a file does not.
    for line in requests:
        input, *words = (_decoded(word) for word in line.split(" "))
        with (
            _scratch(input) as standard_input,
            _scratch() as out,
            _scratch() as err,
        ):
            child = os.fork()
            if child == 0:
                for number, file in enumerate((standard_input, out, err)):
                    os.dup2(file.fileno(), number)
                _work(words)
            code = _waited(child)
            texts = [file.seek(0) or file.read() for file in (out, err)]
        print(code, *(base64.b64encode(text).decode() for text in texts), file=answers, flush=True)


def _scratch(text: str = "") -> IO[bytes]:
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(text.encode())
    file.seek(0)
    return file


def _work(words: list[str]) -> None:
    import signal
    import traceback

    from barnabas.cli.console import main

    signal.alarm(LIMIT_S)
    sys.argv = ["barnabas", *words]
    code: object = 70
    try:
        code = main()
    except SystemExit as exit:
        code = exit.code
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _waited(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return 124 if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)

"""The programs of the documentation: each runs, is shown as it is, and keeps its promise.

A page shows a program's whole text and what it prints; both are compared. Those about delivery are
also killed in the middle, by an exception out of the code that handles records, and started again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tools.processes import start_barnabas

from barnabas import KafkaProducer

pytestmark = pytest.mark.system

DOCS = Path(__file__).resolve().parents[2] / "docs"
PROGRAMS = sorted((DOCS / "examples").glob("*.py"))
PAGES = sorted((DOCS / "how-to").glob("*.md"))
SHOWN = re.compile(r"```python\n(.*?)```", re.DOTALL)
RUN = re.compile(
    r"```console\n\$ python docs/examples/(\w+)\.py 127\.0\.0\.1:9092\n(.*?)```", re.DOTALL
)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of the test's own: the programs' topics have fixed names."""
    broker = start_barnabas(tmp_path / "data", options={"group.initial.rebalance.delay.ms": "0"})
    yield broker.bootstrap
    broker.stop()


def load(name: str) -> ModuleType:
    """Import a program without running it."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Killed(BaseException):
    """Nobody catches this one."""


class Handler:
    """Notes what it is given, and dies at some record, once."""

    def __init__(self, dies_at: int) -> None:
        self.handled: list[Any] = []
        self.dies_at = dies_at

    def __call__(self, what: Any) -> Any:
        self.handled.append(what)
        if len(self.handled) == self.dies_at:
            raise Killed
        return what


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_its_page_shows(program: Path, bootstrap: str) -> None:
    shown = {name: output for page in PAGES for name, output in RUN.findall(page.read_text())}
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program), bootstrap],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert ran.stdout == shown[program.stem]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_page_shows_the_program_as_it_is(program: Path) -> None:
    link = f"(../examples/{program.name})"
    pages = [page.read_text() for page in PAGES if link in page.read_text()]
    assert len(pages) == 1
    assert program.read_text() in SHOWN.findall(pages[0])


@pytest.mark.parametrize(
    "client",
    [
        "barnabas.KafkaAdminClient",
        "barnabas.KafkaProducer",
        "barnabas.KafkaConsumer",
        "barnabas.aio.AIOKafkaAdminClient",
        "barnabas.aio.AIOKafkaProducer",
        "barnabas.aio.AIOKafkaConsumer",
    ],
)
def test_the_example_of_a_docstring_runs(client: str, bootstrap: str) -> None:
    module, _, name = client.rpartition(".")
    text = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    (example,) = re.findall(r"(?:^    .*\n)+", text + "\n", re.MULTILINE)
    imports = f"import asyncio\nfrom barnabas.admin import NewTopic\nfrom {module} import {name}\n"
    program = textwrap.dedent(example).replace("broker:9092", bootstrap)
    if "async " in program:
        program = f"async def main():\n{textwrap.indent(program, '    ')}\nasyncio.run(main())\n"
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        if not name.endswith("AdminClient"):
            producer.send("orders", b"a record", key=b"a key").get(30)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", imports + program],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.stderr == ""
    wanted = {"AdminClient": "['orders']", "Producer": "1", "Consumer": "b'a key' b'a record'"}
    assert ran.stdout.strip() == next(out for end, out in wanted.items() if name.endswith(end))


def test_at_most_once(bootstrap: str) -> None:
    program = load("at_most_once")
    handler = Handler(dies_at=3)
    program.send(bootstrap, 10)
    with pytest.raises(Killed):
        program.receive(bootstrap, 10, handler)
    program.receive(bootstrap, 5, handler)
    # Two of the first five were lost with the program; nothing came twice.
    assert handler.handled == [f"reading {number}" for number in (0, 1, 2, 5, 6, 7, 8, 9)]


def test_at_least_once(bootstrap: str) -> None:
    program = load("at_least_once")
    handler = Handler(dies_at=8)
    program.send(bootstrap, 10)
    with pytest.raises(Killed):
        program.receive(bootstrap, 10, handler)
    program.receive(bootstrap, 5, handler)
    # Three of the second five came again; nothing was lost.
    wanted = [*range(8), *range(5, 10)]
    assert handler.handled == [f"order {number}" for number in wanted]


def test_exactly_once_by_transactions(bootstrap: str) -> None:
    program = load("exactly_once_transactions")
    worker = Handler(dies_at=8)
    program.send(bootstrap, 10)
    with pytest.raises(Killed):
        program.transfer(bootstrap, 10, worker)
    program.transfer(bootstrap, 5, worker)
    assert len(worker.handled) > 10
    program.send(bootstrap, 1)
    program.transfer(bootstrap, 1, lambda _: 99)
    # The eleventh shows that no repetition hides behind the tenth.
    assert program.results(bootstrap, 11) == [*range(10), 99]


def test_exactly_once_by_unique_keys(bootstrap: str, tmp_path: Path) -> None:
    program = load("exactly_once_unique_keys")
    payments = {f"payment-{number}": number for number in range(10)}
    program.send(bootstrap, payments)
    program.send(bootstrap, payments)
    database = sqlite3.connect(tmp_path / "bank.db")

    class Dying:
        """A database whose program dies between the change and the commit to Kafka."""

        def __getattr__(self, name: str) -> Any:
            return getattr(database, name)

        def __enter__(self) -> Any:
            return database.__enter__()

        def __exit__(self, *about: Any) -> None:
            database.__exit__(*about)
            raise Killed

    with pytest.raises(Killed):
        program.receive(bootstrap, 20, Dying())
    (booked,) = database.execute("SELECT count(*) FROM payments").fetchone()
    assert booked == 5
    program.receive(bootstrap, 20, database)
    assert dict(database.execute("SELECT id, amount FROM payments").fetchall()) == payments
    database.close()

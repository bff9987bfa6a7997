"""Write docs/compatibility.md from the results that `make interop` has left.

Each test of tests/interop that runs a client or framework keeps its result in a file of
tests/interop/compatibility: what ran, its version, passed or what is missing. `--check` fails when
the page is not what the results say; how old they are is up to who runs the tests.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
RESULTS = ROOT / "tests" / "interop" / "compatibility"
LOCK = ROOT / "requirements.lock"
HEAD = """\
# Compatibility

Programs that we did not write, each doing its job through a Barnabas broker. The page is generated
(`make docs`) from the results of `make interop`: what was run and asserted, with which version, and
how it ended.
"""
SUITE_HEAD = """
## In every run of the suite

The clients below are part of the normal suite (`make test`), which asserts far more than a row can
say: every codec, sizes up to 10 MB, groups with several members, transactions, logins.
"""
# Package in requirements.lock, or a version by hand; what its tests are called in tests/compat.
SUITE = (
    ("confluent-kafka (librdkafka)", "confluent-kafka", "confluent_kafka"),
    ("kafka-python", "kafka-python", "kafka_python"),
    ("kafka-python, as many still pin it", "2.0.2", "kafka_python_2_0_2"),
    ("aiokafka", "aiokafka", "aiokafka"),
    ("kafkajs", "2.2.4", "kafkajs"),
    ("kcat", "Debian's", "kcat"),
)


@dataclass(frozen=True)
class Result:
    """What one test has shown of a client."""

    client: str
    version: str
    language: str
    ran: str
    test: str

    def write(self, outcome: str) -> None:
        """Keep the result in a file of the test's own."""
        RESULTS.mkdir(exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", self.test.removeprefix("test_").lower()).strip("-")
        document = {**asdict(self), "outcome": outcome}
        text = json.dumps(document, indent=2, ensure_ascii=False)
        (RESULTS / f"{slug}.json").write_text(f"{text}\n")


def page(results: Iterable[dict[str, str]], lock: str, tests: Iterable[str]) -> str:
    """Return the page of these results."""
    by_language: dict[str, list[dict[str, str]]] = {}
    for result in results:
        by_language.setdefault(result["language"], []).append(result)
    parts = [HEAD]
    for language, shown in sorted(by_language.items()):
        rows = [
            (each["client"], each["version"], each["ran"], each["outcome"])
            for each in sorted(shown, key=lambda each: (each["client"].lower(), each["test"]))
        ]
        parts.append(f"\n## {language}\n\n")
        parts.append(_table(("client", "version", "what was run", "result"), rows))
    parts.append(SUITE_HEAD + "\n")
    names = list(tests)
    parts.append(
        _table(
            ("client", "version", "tests"),
            [
                (client, _version(version, lock), ", ".join(_files(stem, names)))
                for client, version, stem in SUITE
            ],
        )
    )
    return "".join(parts)


def _version(name: str, lock: str) -> str:
    found = re.search(rf"^{re.escape(name)}==(\S+)", lock, re.MULTILINE)
    return found[1] if found else name


def _files(stem: str, names: Iterable[str]) -> Iterable[str]:
    found = sorted(name for name in names if name.endswith(f"_{stem}.py"))
    assert found, f"no test in tests/compat is about {stem}"
    return (f"[{name}](../tests/compat/{name})" for name in found)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ["---"] * len(list(head)), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    tests = [path.name for path in (ROOT / "tests" / "compat").glob("test_*.py")]
    text = page(results, LOCK.read_text(), tests)
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

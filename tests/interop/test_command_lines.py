"""Command lines of Kafka's documentation, run by Apache Kafka's tools and by ours.

Each session of tests/interop/command_lines runs four times: by both kinds of tools, against
Apache Kafka 3.9 and against our broker. On each broker, both must exit alike and print alike.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interop.tool_clusters import ToolCluster, start_apache, start_ours
from tests.interop.tool_runners import ApacheTools, OurTools, Ran
from tests.zookeeper import zookeeper, zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.command_lines import Line, Session, read_all

from barnabas.testing.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("command_lines")]

SESSIONS = read_all()
PATIENCE_S = 20
CHANGES = {"--create", "--alter", "--delete", "--execute"}
"""Flags after which brokers may know different things for a moment."""
NORMAL = (
    (r"(TopicId: )\S{22}\b", r"\1ID"),
    (r"(Cluster ID: )\S{22}(?!\S)", r"\1ID"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b\d{4}-\d\d-\d\d[T ,]+\d\d:\d\d(:\d\d([.,:]\d+)?)?Z?", "DATE"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"0x[0-9a-f]{9,16}\b", "SESSION"),
    # ZooKeeper's shell prints this at any time, or not at all if it ends before.
    (r"\n+WATCHER::\n+WatchedEvent .*\n", "\n"),
    # What Java prints beside the failure itself.
    (r"Optional\[(.*?)\]", r"\1"),
    (r"java\.util\.concurrent\.ExecutionException: ", ""),
    (r"(?m)^([\w.]+Exception: .*\n)?(\tat .*\n|Caused by: .*\n|\t\.\.\. \d+ more\n)+", ""),
)

Clusters = Callable[[str, int], ToolCluster]


class Tools:
    """Both kinds of tools, and the directory where they run."""

    def __init__(self, kafka: Distribution, directory: Path) -> None:
        self.directory = directory
        self.apache = ApacheTools(kafka, directory)
        self.ours = OurTools(directory)


@pytest.fixture(scope="module")
def kafka_39() -> Distribution:
    try:
        return Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="module")
def tools(kafka_39: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    tools = Tools(kafka_39, tmp_path_factory.mktemp("tools"))
    yield tools
    tools.apache.close()
    tools.ours.close()


@pytest.fixture(scope="module")
def clusters(
    kafka_39: Distribution,
    zookeeper: ZooKeeperServer,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Clusters]:
    """Start a cluster when it is first needed."""
    running: dict[tuple[str, int], ToolCluster] = {}

    def get(kind: str, count: int) -> ToolCluster:
        if (kind, count) not in running:
            folder = tmp_path_factory.mktemp(f"{kind}-{count}")
            chroot = f"{zookeeper.address}/tools-{kind}-{count}"
            running[kind, count] = (
                start_apache(kafka_39, folder, count, chroot)
                if kind == "apache"
                else start_ours(folder, count, chroot)
            )
        return running[kind, count]

    yield get
    for cluster in running.values():
        cluster.stop()


@pytest.mark.parametrize("kind", ["apache", "ours"])
@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_both_tools_do_the_same(
    session: Session, kind: str, clusters: Clusters, tools: Tools
) -> None:
    cluster = clusters(kind, session.brokers)
    theirs = _run(session, cluster, tools, ours=False)
    ours = _run(session, cluster, tools, ours=True)
    wrong = [
        f"{session.file}.txt:{line.number}: $ {line.text}\n{reason}"
        for line, left, right in zip(session.lines, theirs, ours, strict=True)
        if (reason := _difference(line, left, right))
    ]
    assert not wrong, "\n\n".join(["", *wrong])


def _run(session: Session, cluster: ToolCluster, tools: Tools, *, ours: bool) -> list[Ran]:
    cluster.empty()
    for name, text in session.files.items():
        (tools.directory / name).write_text(cluster.placed(text))

    def once(line: Line) -> Ran:
        words = [cluster.placed(word) for word in line.words]
        words[0] = line.tool
        by_apache = "setup" in line.marks or not ours
        if by_apache and not tools.apache.knows(line.tool):
            assert "only ours" in line.marks, f"Apache Kafka 3.9 has no {line.tool}"
            return Ran(0, "", "")
        ran = (tools.apache if by_apache else tools.ours).run(words, cluster.placed(line.input))
        out = _normalised(ran.out, cluster, tools.directory)
        if CHANGES & {*words}:
            cluster.settle()
        return Ran(ran.code, out, _normalised(ran.err, cluster, tools.directory))

    def until(line: Line) -> Ran:
        deadline = time.monotonic() + PATIENCE_S
        ran = once(line)
        while line.marks.get("until", "") not in ran.out and time.monotonic() < deadline:
            ran = once(line)
        return ran

    done = []
    for line in session.lines:
        skipped = "only ours" in line.marks and not ours
        done.append(Ran(0, "", "") if skipped else until(line))
    return done


def _normalised(text: str, cluster: ToolCluster, directory: Path) -> str:
    text = cluster.normalised(text).replace(f"{directory}/", "")
    for pattern, name in NORMAL:
        text = re.sub(pattern, name, text)
    return text


def _difference(line: Line, theirs: Ran, ours: Ran) -> str:
    """Return how two runs differ, if that is wrong."""
    if "setup" in line.marks:
        return "" if ours.code == 0 else f"exited with {ours.code}: {ours.out}{ours.err}"
    if "Traceback (most recent call last)" in ours.err + ours.out:
        return ours.err + ours.out
    if ours.code == 1 and not ours.err.strip() and not ours.out.strip():
        return "failed without a word"
    for name, ran in (("theirs", theirs), ("ours", ours)):
        if line.marks.get("until", "") not in ran.out and not (
            "only ours" in line.marks and ran is theirs
        ):
            return f"{name}: {line.marks['until']!r} was never printed: {ran.out}{ran.err}"
    if "only ours" in line.marks or line.printed:
        theirs = Ran(int(line.marks.get("exits", "0")), "\n".join([*line.printed, ""]), "")
    found = _compared(line, theirs, ours)
    if "differs" in line.marks:
        return "" if found else "does not differ any more"
    return found


def _compared(line: Line, theirs: Ran, ours: Ran) -> str:
    lines: list[str] = []
    if "code only" not in line.marks:
        outs = (_lines(line, theirs.out), _lines(line, ours.out))
        lines += difflib.unified_diff(*outs, fromfile="theirs", tofile="ours", lineterm="", n=1)
    if theirs.code != ours.code:
        lines.append(f"exit codes: theirs {theirs.code}, ours {ours.code}")
    if lines:
        lines += [
            f"  {name} err: {text[:600]}"
            for name, text in (("theirs", theirs.err), ("our", ours.err))
            if text
        ]
    return "\n".join(lines)


def _lines(line: Line, text: str) -> list[str]:
    if "numbers" in line.marks:
        text = re.sub(r"-?\d+(\.\d+)?", "N", text)
    if "words" in line.marks:
        return text.split()
    lines = [each.rstrip() for each in text.strip().splitlines()]
    if "unsorted" in line.marks:
        return sorted(", ".join(sorted(re.split(", | are ", each.strip()))) for each in lines)
    return lines

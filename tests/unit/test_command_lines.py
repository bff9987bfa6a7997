"""The format of the command lines that tests compare."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.command_lines import Malformed, read, read_all

TEXT = """\
# A comment.
[records are counted] brokers=3
@ offsets.json
| {"partitions":
|   []}
$ bin/kafka-topics.sh --create --topic 'a b'
~ setup
$ kafka-console-producer.sh --topic t
~ differs: it says more
~ exits: 1
< one
< two
> printed
"""


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kafka-things.txt"
    path.write_text(TEXT)
    [session] = read(path)
    assert (str(session), session.brokers) == ("kafka-things: records are counted", 3)
    assert session.files == {"offsets.json": '{"partitions":\n  []}\n'}
    create, produce = session.lines
    assert create.words == ["bin/kafka-topics.sh", "--create", "--topic", "a b"]
    assert (create.tool, create.marks, create.number) == ("kafka-topics", {"setup": ""}, 6)
    assert (produce.input, produce.printed) == ("one\ntwo\n", ["printed"])
    assert produce.marks == {"differs": "it says more", "exits": "1"}


@pytest.mark.parametrize(
    "text", ["$ kafka-topics.sh", "[a]\n~ happy", "[a]\n< one", "[a] brokers=2", "[a]\n?"]
)
def test_malformed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kafka-things.txt"
    path.write_text(text)
    with pytest.raises(Malformed, match=r"kafka-things\.txt:[12]: "):
        read(path)


def test_there_are_enough() -> None:
    lines = [line for session in read_all() for line in session.lines]
    assert sum("setup" not in line.marks for line in lines) >= 150
    assert {line.tool for line in lines if "differs" in line.marks}
    own = "kafka-reassign-partitions.sh --zookeeper localhost:2181/kafka --generate"
    assert any(line.text.startswith(own) for line in lines)

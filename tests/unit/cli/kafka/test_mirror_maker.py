"""`kafka-mirror-maker`: the words of `barnabas mirror` that its flags become."""

from __future__ import annotations

import pytest
from tests.unit.cli.kafka.tool_runs import runner

from barnabas.cli.kafka.flags import UsageError
from barnabas.cli.kafka.mirror_maker import FLAGS, words_of

FILES = ("--consumer.config", "source", "--producer.config", "target")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--include a.*,b --num.streams 4", "--include a.*|b"),
        ("--whitelist '.*' --abort.on.send.failure true", "--include .*"),
        ("--blacklist test", "--include .* --exclude test"),
        ("--include a --offset.commit.interval.ms 500", "--include a --commit-interval 0.5"),
        ("--include a --offset.commit.interval.ms 60000", "--include a --commit-interval 30.0"),
    ],
)
def test_flags(given: str, words: str) -> None:
    flags = [word.strip("'") for word in given.split()]
    assert words_of(FLAGS.parse([*FILES, *flags])) == [*FILES, *words.split()]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "whitelist must be specified"),
        (("--include", "a", "--blacklist", "b"), "give only --include"),
        (("--include", "a", "--message.handler", "my.Handler"), "Java classes cannot be loaded"),
        (("--include", "a", "--offset.commit.interval.ms", "0"), "must be at least 1"),
    ],
)
def test_misuse(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        words_of(FLAGS.parse([*FILES, *words]))


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("kafka-mirror-maker.sh", None, capsys)(
        *FILES, "--include", ".*", "--abort.on.send.failure", "false", "--num.streams", "2"
    )
    assert (run.code, run.out) == (1, "")
    streams, failures, missing = run.err.splitlines()
    assert streams == (
        "kafka-mirror-maker: --num.streams has no effect: one event loop reads all partitions"
    )
    assert "--abort.on.send.failure=false has no effect" in failures
    assert missing == "Error: --consumer.config source: No such file or directory"

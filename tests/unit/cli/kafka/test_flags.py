from __future__ import annotations

import argparse
import re

import pytest

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError


def number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a whole number")
    return int(text)


FLAGS = Flags(
    "Does things.",
    (
        BOOTSTRAP._replace(required=True),
        COMMAND_CONFIG,
        Flag("--list", help="list them"),
        Flag("--delete", help="delete them"),
        Flag("--topic", "TOPIC", "the topic"),
        Flag("--topics-with-overrides", help="only these"),
        Flag("--partitions", "N", "how many", number, default=1),
        Flag("--property", "NAME=VALUE", "may be repeated", many=True),
        Flag("--state", "STATES", "of groups", optional_value=True),
        Flag("--force", help="no questions", inert="nothing is asked"),
        Flag("-t", help="a short one"),
    ),
    one_of=(("list", "delete"),),
    excludes={"list": ("partitions",)},
    needs={"delete": ("topic",)},
)


def parse(text: str) -> Given:
    return FLAGS.parse(f"--bootstrap-server h:1 {text}".split())


@pytest.mark.parametrize(
    "text", ["--topic orders", "--topic=orders", "-topic orders", "-topic=orders"]
)
def test_a_name_is_written_in_several_ways(text: str) -> None:
    given = parse(f"--list {text}")
    assert given["topic"] == "orders"
    assert given["list"] is True
    assert given["delete"] is False
    assert "delete" not in given


def test_a_whole_name_is_no_abbreviation_of_a_longer_one() -> None:
    assert parse("--list --topic x").values.keys() == {"bootstrap-server", "list", "topic"}


def test_the_beginning_of_a_name_is_enough() -> None:
    assert FLAGS.parse(["--boot", "h:1", "--li"]).values == {
        "bootstrap-server": "h:1",
        "list": True,
    }


def test_values_have_types_and_defaults() -> None:
    given = parse("--delete --topic x --partitions 3 --property a=1 --property b=2")
    assert given["partitions"] == 3
    assert given["property"] == ["a=1", "b=2"]
    nothing = parse("--list")
    assert nothing["partitions"] == 1
    assert nothing["property"] == []
    assert nothing["topic"] is None


def test_a_value_may_be_left_out_where_that_means_something() -> None:
    assert parse("--list --state")["state"] == ""
    assert parse("--state --list")["state"] == ""
    assert parse("--list --state Stable,Empty")["state"] == "Stable,Empty"
    assert parse("--list")["state"] is None


def test_a_value_may_begin_with_a_dash_or_hold_an_equals_sign() -> None:
    assert parse("--list --topic -1")["topic"] == "-1"
    assert parse("--list --topic=a=b")["topic"] == "a=b"


def test_words_that_mean_nothing_are_kept_or_refused() -> None:
    assert parse("--list orders -t").words == ["orders"]
    assert parse("--list -- --topic").words == ["--topic"]
    strict = Flags("Does one thing.", (), ignores_words=False)
    with pytest.raises(UsageError, match="unrecognized arguments: 'orders'"):
        strict.parse(["orders"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("--list --topci x", "topci is not a recognized option; did you mean --topic?"),
        ("--list --xyz", "xyz is not a recognized option"),
        ("--list --bootstrap-servers x", "did you mean --bootstrap-server?"),
        ("--list --to x", "to is ambiguous: it may be --topic, --topics-with-overrides"),
        ("--list --topic", "Option topic requires an argument"),
        ("--topic --list", "Option topic requires an argument"),
        ("--list=yes", "Option list does not take an argument, but got 'yes'"),
        (
            "--list --topic a --topic b",
            "Found multiple arguments for option topic, but you asked for only one",
        ),
        ("--list --delete", "Command must include exactly one action: --list, --delete"),
        ("", "Command must include exactly one action: --list, --delete"),
        ("--list --partitions 2", 'Option "[list]" can\'t be used with option "[partitions]"'),
        ("--delete", 'Missing required argument "[topic]"'),
        (
            "--delete --topic x --partitions two",
            "Cannot parse argument 'two' of option partitions\nmust be a whole number",
        ),
    ],
)
def test_what_is_wrong_is_said_in_kafkas_words(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        parse(text)


def test_a_required_flag() -> None:
    with pytest.raises(
        UsageError, match=re.escape('Missing required argument "[bootstrap-server]"')
    ):
        FLAGS.parse(["--list"])


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_need_nothing_else(word: str) -> None:
    assert word[2:] in FLAGS.parse([word])


def test_help_lists_all_flags() -> None:
    text = FLAGS.help("barnabas kafka-things")
    assert text.startswith("usage: barnabas kafka-things [OPTION]...\n\nDoes things.\n")
    assert "  --partitions N                      how many (default: 1)\n" in text
    assert "  --state [STATES]                    of groups\n" in text
    assert "no questions (no effect: nothing is asked)\n" in text
    assert "brokers to connect to (required)\n" in text
    assert "--help" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_connection_has_the_brokers_and_the_file() -> None:
    given = FLAGS.parse(["--bootstrap-server", "h:1", "--list", "--command-config", "client.conf"])
    connection = given.connection(timeout_s=5)
    assert connection.bootstrap == "h:1"
    assert connection.command_config.path == "client.conf"
    assert connection.timeout == 5

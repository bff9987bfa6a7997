"""`kafka-consumer-groups`: list, describe and delete groups, reset and delete their offsets.

As with Kafka's tool, a failure is printed on standard output, and the exit code is 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.kafka.integers import whole_number
from barnabas.cli.kafka.offset_scenarios import SCENARIOS, exclusive

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
DETAILS = ("members", "offsets", "state")
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES = ("Classic", "Consumer")

FLAGS = Flags(
    "List and describe consumer groups, delete them, reset or delete their offsets.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("--list", help="list all groups"),
        Flag("--describe", help="describe groups and their lag"),
        Flag("--delete", help="delete groups with their offsets"),
        Flag("--reset-offsets", help="reset the offsets of groups without members"),
        Flag("--delete-offsets", help="delete the offsets of a group for topics"),
        Flag("--validate-regex", "REGEX", "say whether brokers understand it"),
        Flag("--group", "GROUP", "a group; may be repeated", many=True),
        Flag("--all-groups", help="all groups"),
        Flag("--topic", "TOPIC[:N,...]", "a topic, or partitions of it; repeatable", many=True),
        Flag("--all-topics", help="all topics with a committed offset"),
        Flag("--members", help="describe the members"),
        Flag("--offsets", help="describe the offsets (default)"),
        Flag(
            "--state",
            "STATES",
            "describe or list the state; to list: only these",
            default="",
            optional_value=True,
        ),
        Flag(
            "--type",
            "TYPES",
            "list the type, or only groups of these",
            default="",
            optional_value=True,
        ),
        Flag("--verbose", help="more details"),
        Flag("--timeout", "MS", "timeout of a call", whole_number, 5000),
        Flag("--dry-run", help="only show the new offsets (default)"),
        Flag("--execute", help="commit the new offsets"),
        Flag("--export", help="print the new offsets as CSV"),
        Flag("--to-current", help="to the committed offsets"),
        *SCENARIOS,
    ),
    one_of=((*ACTIONS, "validate-regex"),),
    excludes={"group": ("all-groups",)},
)


def run(given: Given) -> int:
    """Check what cannot stand together, and act."""
    if "validate-regex" in given:
        return _validate(given["validate-regex"])
    if "bootstrap-server" not in given:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    _check(given)
    chosen(given["state"], STATES, "state")
    chosen(given["type"], TYPES, "types")
    from barnabas.cli.kafka.consumer_group_actions import act

    return act(next(key for key in ACTIONS if key in given), given)


def _validate(text: str) -> int:
    """Say whether a regular expression is one that brokers understand."""
    from barnabas.model.errors import InvalidValueError
    from barnabas.model.patterns import compile_pattern

    try:
        compile_pattern(text)
    except InvalidValueError as failure:
        reason = str(failure).removeprefix(f"{text!r} is not a regular expression: ")
        print(f"The regular expression `{text}` is invalid: {reason}.")
    else:
        print(f"The regular expression `{text}` is valid.")
    return 0


def _check(given: Given) -> None:
    """Raise where Kafka's tool prints its usage."""
    for key, owners in (
        *((key, ("describe",)) for key in ("members", "offsets", "verbose")),
        ("state", ("describe", "list")),
        ("type", ("list",)),
    ):
        if key in given and not any(owner in given for owner in owners):
            raise UsageError(f"Option(s) [{key}] are unavailable given other options on the line")
    for action in ("describe", "delete", "reset-offsets"):
        if action in given and "group" not in given and "all-groups" not in given:
            raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if "describe" in given:
        if sum(key in given for key in DETAILS) > 1:
            those = ", ".join(f"[{key}]" for key in DETAILS)
            raise UsageError(f"Option [describe] takes at most one of these options: {those}")
        if given["state"]:
            raise UsageError("Option [describe] does not take a value for [state]")
    if "delete" in given and "topic" in given:
        raise UsageError(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if "delete-offsets" in given and ("group" not in given or "topic" not in given):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if "reset-offsets" in given:
        _check_reset(given)
    for key, actions in (("group", ("list",)), ("topic", ("list", "describe"))):
        for action in actions:
            if key in given and action in given:
                raise UsageError(f'Option "[{key}]" can\'t be used with option "[{action}]"')


def _check_reset(given: Given) -> None:
    if "dry-run" in given and "execute" in given:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if "dry-run" not in given and "execute" not in given:
        print(
            "WARN: No action will be performed as the --execute option is missing."
            "In a future major release, the default behavior of this command will be to prompt the "
            "user before executing the reset rather than doing a dry run. You should add the "
            "--dry-run option explicitly if you are scripting this command and want to keep the "
            "current default behavior without prompting.",
            file=sys.stderr,
        )
    scenarios = exclusive("to-current")
    for key, others in scenarios.items():
        for other in others:
            if key in given and other in given:
                raise UsageError(f'Option "[{key}]" can\'t be used with option "[{other}]"')
    if not any(key in given for key in ("topic", "all-topics", "from-file")):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    if not any(key in given for key in scenarios):
        those = ", ".join(f"[{key}]" for key in scenarios)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{those}]"
        )


def chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    """Return the words of a list by their right names."""
    if not text:
        return []
    names = {name.lower(): name for name in known}
    words = [word.strip().lower() for word in text.split(",")]
    if not names.keys() >= set(words):
        raise UsageError(
            f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}"
        )
    return [names[word] for word in words]

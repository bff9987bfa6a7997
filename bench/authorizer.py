"""How long the authorizer takes to answer, with many ACLs.

    python bench/authorizer.py [--acls 10000] [--quick]

Half of the ACLs are literal, half are prefixed, of 500 principals. `asked before` is the case of
every request but the first: the answer is remembered. `asked first` decides by the index. Times are
of the process's CPU, the best of some rounds; the loop around the question is subtracted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from barnabas.security.acl import (
    AclAuthorizer,
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal

PRINCIPALS = 500
HOST = "10.1.2.3"
READ, WRITE, TOPIC = Operation.READ, Operation.WRITE, ResourceType.TOPIC


def some_acls(count: int) -> list[Binding]:
    """Return ACLs as a cluster with many teams has them."""
    acls = []
    for number in range(count):
        prefixed = number % 2 == 1
        name = f"team-{number % 97}.service-{number}" + ("." if prefixed else "")
        pattern = Pattern(TOPIC, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)
        operation = READ if number % 3 else WRITE
        permission = Permission.DENY if number % 50 == 0 else Permission.ALLOW
        acls.append(
            Binding(pattern, Entry(f"User:u{number % PRINCIPALS}", "*", operation, permission))
        )
    return acls


def best(work: Callable[[], object], count: int, rounds: int) -> float:
    """Return the least CPU time of one of `count` questions, in nanoseconds."""
    shortest = float("inf")
    for _ in range(rounds):
        start = time.process_time_ns()
        work()
        shortest = min(shortest, time.process_time_ns() - start)
    return shortest / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else 15
    acls = some_acls(arguments.acls)
    start = time.process_time_ns()
    authorizer = AclAuthorizer()
    authorizer.load(acls)
    loaded_ms = (time.process_time_ns() - start) / 1e6
    alice = Principal("User", "u7")
    names = [binding.pattern.name for binding in acls[:1000]]
    count = len(names)

    def nothing() -> None:
        for _ in names:
            pass

    def ask() -> None:
        allows = authorizer.allows
        for name in names:
            allows(alice, HOST, READ, TOPIC, name)

    def ask_first() -> None:
        authorizer._forget_answers()
        ask()

    def ask_any() -> None:
        for _ in names:
            authorizer.allows_any(alice, HOST, WRITE, TOPIC)

    loop = best(nothing, count, rounds)
    print(f"{len(acls)} ACLs loaded in {loaded_ms:.0f} ms")
    for label, work in (
        ("asked before", ask),
        ("asked first", ask_first),
        ("any topic, asked before", ask_any),
    ):
        work()
        print(f"{label:<24}{best(work, count, rounds) - loop:8.0f} ns")


if __name__ == "__main__":
    main()

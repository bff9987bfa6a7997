"""`barnabas users`: who can log in with SCRAM. Passwords are typed, or read from a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping

from barnabas.admin.scram import (
    DEFAULT_ITERATIONS,
    Alteration,
    ScramCredential,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.cli.arguments import add_action, count
from barnabas.cli.output import print_json, print_table
from barnabas.cli.password import new_password
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.security.sasl.scram_credentials import ITERATIONS_MAX, ITERATIONS_MIN

Credentials = Mapping[str, tuple[ScramCredential, ...]]

_MECHANISMS = {
    each.name.replace("_", "-"): each
    for each in ScramMechanism
    if each is not ScramMechanism.UNKNOWN
}

ABOUT_MECHANISMS = """

A user who has both mechanisms can log in on every listener with SCRAM, whichever it enables."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = add_action(
        actions,
        "list",
        "show users, and the mechanisms that they can log in with",
        _list,
        "  barnabas users list\n  barnabas users list ada --json",
    )
    listing.add_argument("users", metavar="USER", nargs="*", help="only these (default: all)")
    adding = add_action(
        actions,
        "add",
        "add a user",
        _add,
        "  barnabas users add ada\n"
        "  barnabas users add ada --mechanism SCRAM-SHA-512 --iterations 16384\n"
        f"  barnabas users add ada --password-file ada.password{ABOUT_MECHANISMS}",
    )
    _add_password(adding, "may be repeated (default: all)", f"default: {DEFAULT_ITERATIONS}")
    setting = add_action(
        actions,
        "set-password",
        "set the password of a user",
        _set_password,
        "  barnabas users set-password ada\n"
        "  openssl rand -base64 24 | tee ada.password | "
        "barnabas users set-password ada --password-file -\n\n"
        "Connections that are open stay open.",
    )
    _add_password(
        setting, "may be repeated (default: those that the user has)", "default: as before"
    )
    removing = add_action(
        actions,
        "remove",
        "remove users, or one of their mechanisms",
        _remove,
        "  barnabas users remove ada\n  barnabas users remove ada --mechanism SCRAM-SHA-256\n\n"
        "Connections that are open stay open, and so do ACLs: barnabas acls remove --principal ada",
    )
    removing.add_argument("users", metavar="USER", nargs="+")
    _add_mechanism(removing, "only this; may be repeated (default: all)")


def _add_password(parser: argparse.ArgumentParser, mechanisms: str, iterations: str) -> None:
    parser.add_argument("user", metavar="USER")
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="file with the password in its only line, - for standard input (default: ask)",
    )
    _add_mechanism(parser, f"how the user can log in; {mechanisms}")
    parser.add_argument(
        "--iterations",
        metavar="N",
        type=_iterations,
        help=f"how often the password is hashed: from {ITERATIONS_MIN} to {ITERATIONS_MAX} "
        f"({iterations}); more make it harder to guess from what brokers store",
    )


def _add_mechanism(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument(
        "--mechanism", choices=tuple(_MECHANISMS), action="append", default=[], help=meaning
    )


def _iterations(text: str) -> int:
    number = count(text)
    if not ITERATIONS_MIN <= number <= ITERATIONS_MAX:
        raise argparse.ArgumentTypeError(
            f"{text} must be from {ITERATIONS_MIN} to {ITERATIONS_MAX}, as brokers require"
        )
    return number


def _name(mechanism: ScramMechanism) -> str:
    return mechanism.name.replace("_", "-")


def _chosen(arguments: argparse.Namespace) -> list[ScramMechanism]:
    return [_MECHANISMS[name] for name in dict.fromkeys(arguments.mechanism)]


# list


def _list(arguments: argparse.Namespace) -> int:
    users = arguments.users or None
    found = run(arguments, lambda client: describe_user_scram_credentials(client, users))
    known = {user: each for user, each in found.items() if not isinstance(each, RequestError)}
    failed = {user: each for user, each in found.items() if isinstance(each, RequestError)}
    if arguments.json:
        print_json(
            [
                {
                    "user": user,
                    "credentials": [
                        {"mechanism": _name(each.mechanism), "iterations": each.iterations}
                        for each in credentials
                    ],
                }
                for user, credentials in sorted(known.items())
            ]
            + [{"user": user, "error": str(each)} for user, each in sorted(failed.items())]
        )
    else:
        print_table(
            ["user", "mechanism", "iterations"],
            [
                [user, _name(each.mechanism), each.iterations]
                for user, credentials in sorted(known.items())
                for each in credentials
            ],
        )
        for user in sorted(failed):
            print(failed[user])
    return 1 if failed else 0


# add, set-password, remove


def _add(arguments: argparse.Namespace) -> None:
    user = arguments.user
    mechanisms = _chosen(arguments) or list(_MECHANISMS.values())

    def check(found: Credentials) -> dict[ScramMechanism, int]:
        taken = [each.mechanism for each in found.get(user, ()) if each.mechanism in mechanisms]
        if taken:
            names = " and ".join(map(_name, taken))
            failure = InvalidValueError(f"user {user} has a password for {names}")
            failure.add_note(f"change it with: barnabas users set-password {user}")
            raise failure
        return dict.fromkeys(mechanisms, DEFAULT_ITERATIONS)

    _set(arguments, check, "added")


def _set_password(arguments: argparse.Namespace) -> None:
    user = arguments.user

    def check(found: Credentials) -> dict[ScramMechanism, int]:
        if user not in found:
            raise _unknown(user)
        before = {each.mechanism: each.iterations for each in found[user]}
        chosen = _chosen(arguments) or list(before)
        # Other tools may have set fewer than brokers accept today.
        return {each: max(before.get(each, 0), DEFAULT_ITERATIONS) for each in chosen}

    _set(arguments, check, "changed")


def _set(
    arguments: argparse.Namespace,
    check: Callable[[Credentials], dict[ScramMechanism, int]],
    done: str,
) -> None:
    """Set a password for the mechanisms that `check` returns, with their iterations."""
    user: str = arguments.user
    found = run(arguments, lambda client: _credentials(client, [user]))
    mechanisms = check(found)  # before the password is typed
    password = new_password(user, arguments.password_file)
    changes: list[Alteration] = [
        UserScramCredentialUpsertion(user, each, password, arguments.iterations or iterations)
        for each, iterations in mechanisms.items()
    ]
    run(arguments, lambda client: _alter(client, changes))
    if arguments.json:
        print_json({"user": user, "mechanisms": [_name(each) for each in mechanisms]})
    else:
        print(f"user {user} {done}: {', '.join(map(_name, mechanisms))}")


def _remove(arguments: argparse.Namespace) -> None:
    users = list(dict.fromkeys(arguments.users))
    removed: dict[str, list[ScramMechanism]] = {}

    async def remove(client: ClusterClient) -> None:
        found = await _credentials(client, users)
        for user in users:
            if user not in found:
                raise _unknown(user)
            there = [each.mechanism for each in found[user]]
            removed[user] = _chosen(arguments) or there
            for each in removed[user]:
                if each not in there:
                    raise InvalidValueError(f"user {user} has no password for {_name(each)}")
        changes: list[Alteration] = [
            UserScramCredentialDeletion(user, each)
            for user, mechanisms in removed.items()
            for each in mechanisms
        ]
        await _alter(client, changes)

    run(arguments, remove)
    if arguments.json:
        print_json(
            [
                {"user": user, "mechanisms": [_name(each) for each in mechanisms]}
                for user, mechanisms in removed.items()
            ]
        )
        return
    for user, mechanisms in removed.items():
        print(f"user {user} removed: {', '.join(map(_name, mechanisms))}")


async def _credentials(client: ClusterClient, users: Iterable[str]) -> Credentials:
    """Return the credentials of those users who have some."""
    found: dict[str, tuple[ScramCredential, ...]] = {}
    for user, each in (await describe_user_scram_credentials(client, users)).items():
        if not isinstance(each, RequestError):
            found[user] = each
        elif each.code is not ErrorCode.RESOURCE_NOT_FOUND:
            raise each
    return found


async def _alter(client: ClusterClient, changes: list[Alteration]) -> None:
    for error in (await alter_user_scram_credentials(client, changes)).values():
        if error is not None:
            raise error


def _unknown(user: str) -> InvalidValueError:
    failure = InvalidValueError(f"user {user} does not exist")
    failure.add_note("barnabas users list shows those that do")
    return failure

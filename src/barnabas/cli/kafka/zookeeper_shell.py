"""`zookeeper-shell`: look at the nodes of ZooKeeper, and change them.

    zookeeper-shell localhost:2181/kafka ls /brokers/ids

With a command it runs that one; otherwise those that it reads from standard input.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.kafka.flags import UsageError
from barnabas.cli.kafka.tree import on_tree, properties_of
from barnabas.model.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.coordination.contract import Coordination, Stat

SUMMARY = "Look at the nodes of ZooKeeper, and change them."
USAGE = """\
usage: zookeeper-shell HOST:PORT[,...][/CHROOT] [-zk-tls-config-file FILE] [COMMAND [ARGUMENT]...]

commands:
  ls [-s] [-R] PATH           children of a node, with -R also those below
  get [-s] PATH               data of a node, with -s also its stat
  stat PATH                   stat of a node
  create [-s] [-e] PATH [DATA]
  set [-s] [-v VERSION] PATH DATA
  delete [-v VERSION] PATH
  deleteall PATH
  quit
"""


class CommandFailed(BarnabasError):
    """A command on a node that failed."""


class Words(NamedTuple):
    """A command's options and the rest of its words."""

    options: frozenset[str]
    version: int
    rest: list[str]


def main(words: Sequence[str]) -> int:
    """Run one command, or those on standard input, and return the exit code."""
    rest = list(words)
    if not rest or rest[0] in ("-h", "-help", "--help"):
        print(USAGE, end="", file=sys.stdout if rest else sys.stderr)
        return 0 if rest else 1
    if rest[0] == "-server":
        rest.pop(0)
    if not rest or rest[0].startswith("-"):
        raise UsageError("zookeeper-shell: HOST:PORT comes first")
    connect = rest.pop(0)
    file = None
    if rest[:1] == ["-zk-tls-config-file"] or rest[:1] == ["--zk-tls-config-file"]:
        if len(rest) < 2:
            raise UsageError("zookeeper-shell: -zk-tls-config-file needs a file")
        file, rest = rest[1], rest[2:]
    print(f"Connecting to {connect}", flush=True)

    async def work(tree: Coordination) -> int:
        print("\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null", flush=True)
        return await _one(tree, rest) if rest else await _all(tree)

    return on_tree(connect, work, properties_of(file))


async def _all(tree: Coordination) -> int:
    """Run commands until the input ends; their failures do not end the shell."""
    reads = sys.stdin
    print("Welcome to Barnabas' shell for ZooKeeper; type help, or quit", flush=True)
    while line := await asyncio.to_thread(reads.readline):
        try:
            words = shlex.split(line)
        except ValueError as failure:
            print(failure)
            continue
        if words and words[0] in ("quit", "exit", "close"):
            break
        if words:
            await _one(tree, words)
    return 0


async def _one(tree: Coordination, words: list[str]) -> int:
    from barnabas.coordination.contract import CoordinationError

    command = COMMANDS.get(words[0])
    if words[0] in ("help", "?") or command is None:
        print(USAGE, end="", file=sys.stderr)
        if words[0] in ("help", "?"):
            return 0
        print(f"Command not found: {words[0]}", file=sys.stderr)
        return 127
    try:
        await command(tree, _parsed(words))
    except (CommandFailed, CoordinationError) as failure:
        print(_reason(failure), file=sys.stderr)
        return 1
    return 0


def _parsed(words: list[str]) -> Words:
    options: set[str] = set()
    rest: list[str] = []
    version = -1
    queue = words[1:]
    while queue:
        word = queue.pop(0)
        if word == "-v" and queue and queue[0].lstrip("-").isdecimal():
            version = int(queue.pop(0))
        elif word.startswith("-") and len(word) == 2 and not rest:
            options.add(word)
        else:
            rest.append(word)
    if not rest:
        raise UsageError(f"zookeeper-shell: {words[0]} needs a path")
    return Words(frozenset(options), version, rest)


def _reason(failure: BarnabasError) -> str:
    from barnabas.coordination.contract import BadVersion, NodeExists, NoNode, NotEmpty

    path = getattr(failure, "path", "")
    if isinstance(failure, NoNode):
        return f"Node does not exist: {path}"
    if isinstance(failure, NodeExists):
        return f"Node already exists: {path}"
    if isinstance(failure, NotEmpty):
        return f"Node not empty: {path}"
    if isinstance(failure, BadVersion):
        return f"version No is not valid : {path}"
    return str(failure)


async def _ls(tree: Coordination, words: Words) -> None:
    path = words.rest[0]
    if "-R" in words.options:
        for each in await _below(tree, path):
            print(each)
        return
    children = sorted(await tree.children(path))
    print(f"[{', '.join(children)}]")
    if "-s" in words.options:
        await _print_stat(tree, path)


async def _below(tree: Coordination, path: str) -> list[str]:
    found = [path]
    for child in sorted(await tree.children(path)):
        found += await _below(tree, f"{path.rstrip('/')}/{child}")
    return found


async def _get(tree: Coordination, words: Words) -> None:
    data, stat = await tree.get(words.rest[0])
    print(data.decode(errors="replace") if data else "null")
    if "-s" in words.options:
        _print(data, stat)


async def _stat(tree: Coordination, words: Words) -> None:
    await _print_stat(tree, words.rest[0])


async def _print_stat(tree: Coordination, path: str) -> None:
    _print(*await tree.get(path))


def _print(data: bytes, stat: Stat) -> None:
    print(f"cZxid = {stat.czxid:#x}")
    print(f"mZxid = {stat.mzxid:#x}")
    print(f"dataVersion = {stat.version}")
    print(f"ephemeralOwner = {stat.ephemeral_owner:#x}")
    print(f"dataLength = {len(data)}")
    print(f"numChildren = {stat.num_children}")


async def _create(tree: Coordination, words: Words) -> None:
    path, *data = words.rest
    made = await tree.create(
        path,
        " ".join(data).encode(),
        sequence="-s" in words.options,
        ephemeral="-e" in words.options,
    )
    print(f"Created {made}", file=sys.stderr)  # as ZooKeeper's own shell


async def _set(tree: Coordination, words: Words) -> None:
    if len(words.rest) < 2:
        raise UsageError("zookeeper-shell: set needs a path and data")
    await tree.set(words.rest[0], " ".join(words.rest[1:]).encode(), words.version)


async def _delete(tree: Coordination, words: Words) -> None:
    await tree.delete(words.rest[0], words.version)


async def _delete_all(tree: Coordination, words: Words) -> None:
    for path in reversed(await _below(tree, words.rest[0])):
        await tree.delete(path)


COMMANDS: dict[str, Callable[[Coordination, Words], Awaitable[None]]] = {
    "ls": _ls,
    "get": _get,
    "stat": _stat,
    "create": _create,
    "set": _set,
    "delete": _delete,
    "deleteall": _delete_all,
    "rmr": _delete_all,
}

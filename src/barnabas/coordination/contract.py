"""What brokers ask of a coordination service: a small tree of nodes, with watches and sessions.

**Nodes.** A path is `/` or `/a/b/c`. A node has up to 1 MiB of data, a `version` (0 at creation,
+1 per `set`), a `czxid` (the id of the transaction that created it) and a `mzxid` (that of its
last `set`, or its creation). Transaction ids grow over the whole life of the service, restarts
included, so the czxid of a broker's registration serves as its epoch. The parts of one `multi`
share one id.

**Kinds.** A persistent node stays until it is deleted. An ephemeral node goes with the session
that created it and has no children. A sequential node gets ten decimal digits appended to its
name: the number of children its parent was ever given before it, so names of one parent only
grow.

**Order.** Writes take effect one after the other, in one order for all sessions, and a call
returns only when its effect is as durable as the implementation promises. Nothing is answered
from a state that may still be undone: a read that saw a write waits for it too.

**Watches** fire once. `get` and `exists` watch a node (created, its data changed, deleted),
`children` watches the list of names (a child came or went, the node was deleted). The callback
runs on the event loop, after the change took effect, in the order of the changes, and before any
call of the same session returns a state that contains the change. It may rarely fire without a
change (a write that was undone): read again, always. The same callback given twice for one thing
fires once. Watches end with their session.

**Sessions.** `start()` opens one. When the service has not heard of it for too long it *expires*:
its ephemeral nodes are deleted, its watches are gone, and each call raises `SessionExpired` until
`start()` is called again, which opens a new session with a new id. Losing contact alone ends
nothing: the session is SUSPENDED, its calls wait for contact to come back, and its watches stay
(what happened meanwhile fires them then). `close()` ends the session at once.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from barnabas.model.errors import BarnabasError, InvalidValueError

DATA_SIZE_MAX = 1024 * 1024
"""Most bytes that one node may hold."""

ANY_VERSION = -1
"""As an expected version: do not check."""


class CoordinationError(BarnabasError):
    """The service refused; `path` names the node. Of a `multi`, nothing took effect."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class NoNode(CoordinationError):
    """The node, or the parent of the node to create, does not exist."""


class NodeExists(CoordinationError):
    """There is a node at that path already."""


class BadVersion(CoordinationError):
    """The node's version is not the expected one: somebody else wrote."""


class NotEmpty(CoordinationError):
    """The node to delete has children."""


class NoChildrenForEphemerals(CoordinationError):
    """The parent of the node to create is ephemeral."""


class SessionExpired(CoordinationError):
    """The session has ended, or was never started; `start()` opens a new one."""

    def __init__(self, session_id: int) -> None:
        super().__init__("", f"session {session_id} has ended")


class ServiceUnavailable(CoordinationError):
    """No session could be opened in time; the message names the servers and the option."""

    retriable = True

    def __init__(self, message: str) -> None:
        super().__init__("", message)


class NoPermission(CoordinationError):
    """The node's ACL does not let this session do that, or its credentials were refused."""


class EventType(Enum):
    """What a watch saw."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


class Event(NamedTuple):
    """One change, as a watch hears of it."""

    type: EventType
    path: str


Watch: TypeAlias = Callable[[Event], object]
"""Called on the event loop, once."""


class SessionState(Enum):
    """Where a session stands.

    A service in this process is never out of contact, so its sessions are never SUSPENDED.
    """

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


SessionListener: TypeAlias = Callable[[SessionState], object]
"""Called on the event loop after each change of state, until it is removed."""


class Contact(NamedTuple):
    """How long ago a session was last known to be alive, by the clock of whoever holds it.

    Only what the service as a whole must have seen counts: a server that has lost the others may
    answer reads for a while after they have ended the session.
    """

    timeout_ms: int
    """The service ends the session when it has not heard of it for so long."""
    asked_ago_ms: float
    """How long ago the last request was sent that the service answered: it was alive then."""
    heard_ago_ms: float
    """How long ago that answer came."""
    asked_s: float
    """When it was sent, by the session's own clock: the same until a newer one is answered."""


class Stat(NamedTuple):
    """All about a node but its data."""

    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int
    """The session that an ephemeral node belongs to; 0 for the other kinds."""
    num_children: int


@dataclass(frozen=True, slots=True)
class Create:
    """Part of a `multi`: create a node. Its result is the actual path."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Part of a `multi`: replace a node's data. Its result is the new Stat."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Part of a `multi`: delete a node without children. Its result is None."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Part of a `multi`: demand that a node exists with this version. Its result is None."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | Stat | None
Found: TypeAlias = tuple[bytes, Stat]
"""A node's data, and all else about it."""


class Coordination(ABC):
    """One session with the service; see the top of this file for what holds for all calls.

    All calls belong to the event loop on which `start()` ran.
    """

    @property
    @abstractmethod
    def session_id(self) -> int:
        """The present or last session's id; 0 before the first `start()`."""

    @property
    @abstractmethod
    def state(self) -> SessionState:
        """Where the session stands; CLOSED before the first `start()`."""

    @property
    def contact(self) -> Contact | None:
        """When the session was last known to be alive; None where it cannot end by silence."""
        return None

    @abstractmethod
    def add_session_listener(self, listener: SessionListener) -> None:
        """Have `listener` called after each change of the session's state; it outlives sessions."""

    @abstractmethod
    def remove_session_listener(self, listener: SessionListener) -> None:
        """Take `listener` away again; one that is not there is ignored."""

    @abstractmethod
    async def start(self) -> None:
        """Open a session: the first, or the next after an expiry. No-op while one is open."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone when this returns. May be called again.

        While contact is lost nobody can be told: then the nodes go when the service misses us.
        """

    @abstractmethod
    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        """Create a node and return its actual path (longer than `path` if sequential).

        `make_parents` creates the missing nodes above it, persistent and empty.
        Raises NodeExists, NoNode (no parent), NoChildrenForEphemerals.
        """

    @abstractmethod
    async def get(self, path: str, watch: Watch | None = None) -> Found:
        """Return data and Stat; raises NoNode, and then leaves no watch."""

    @abstractmethod
    async def get_many(
        self, paths: Sequence[str], watch: Watch | None = None
    ) -> list[Found | None]:
        """Return data and Stat of each node, None (and leave no watch) where there is none.

        Each is read as by `get`, but no read waits for the answer to another.
        """

    @abstractmethod
    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data if the version is as expected; raises NoNode, BadVersion."""

    @abstractmethod
    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete the node if the version is as expected; raises NoNode, BadVersion, NotEmpty."""

    @abstractmethod
    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the node's Stat, or None; a watch is left in both cases."""

    @abstractmethod
    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; raises NoNode and then leaves no watch."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all operations, each seeing those before it, or none; return a result for each.

        Raises the error of the first operation that cannot be done.
        """

    async def multi_each(
        self, batches: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | CoordinationError]:
        """Do each of several `multi`s whole or not; return its results, or what speaks against it.

        None waits for the answer to another, so none may depend on another. Raises SessionExpired.
        """
        outcomes = await asyncio.gather(
            *(self.multi(batch) for batch in batches), return_exceptions=True
        )
        answers: list[list[Result] | CoordinationError] = []
        for outcome in outcomes:
            if isinstance(outcome, list) or (
                isinstance(outcome, CoordinationError) and not isinstance(outcome, SessionExpired)
            ):
                answers.append(outcome)
            else:
                raise outcome
        return answers


_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""Characters that ZooKeeper allows in no name; to Java those beyond 16 bits are two of them."""


def check_path(path: str) -> str:
    """Return `path`; raise InvalidValueError unless it can name a node."""
    if path == "/":
        return path
    names = path.split("/")
    if names[0] or len(names) < 2 or any(n in ("", ".", "..") for n in names[1:]):
        raise InvalidValueError(f"{path!r} is not the path of a node: want /name/name")
    refused = _REFUSED.search(path)
    if refused is not None:
        raise InvalidValueError(
            f"{path!r} is not the path of a node: ZooKeeper refuses the character {refused[0]!r}"
        )
    return path


def parent_of(path: str) -> str:
    """Return the path of the node above; of the root, the root."""
    return path[: path.rindex("/")] or "/"


def parents_of(path: str) -> list[str]:
    """Return the paths of all nodes between the root and `path`, both left out, top first."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]

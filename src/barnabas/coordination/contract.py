"""What brokers require of a coordination service: a small tree of nodes, watches and sessions.

**Nodes.** A path is `/` or `/a/b/c`. A node has up to 1 MiB of data, a `version` (0 at creation,
+1 per `set`), a `czxid` (the id of the transaction that created it) and a `mzxid` (that of its
last `set`, or its creation). Transaction ids grow over the whole life of the service, restarts
included, so the czxid of a broker's registration serves as its epoch. The parts of one `multi`
share one id.

**Kinds.** A persistent node stays until it is deleted. An ephemeral node is deleted with the
session that created it and has no children. A sequential node gets ten decimal digits appended to
its name: how many children its parent has ever had, so the names below one parent only grow.

**Order.** Writes take effect one after the other, in one order for all sessions, and a call returns
only when its effect is as durable as the implementation promises. No response reveals a state that
may still be rolled back: a read that saw a write waits for it, too.

**Watches** fire once. `get` and `exists` watch a node (created, its data changed, deleted),
`children` watches the list of names (a child created or deleted, the node deleted). The callback
runs on the event loop, after the change took effect, in the order of the changes, and before any
call of the same session returns a state that contains the change. It may rarely fire without a
change (a write that was rolled back): always read again. The same callback given twice for one
thing fires once. Watches end with their session.

**Sessions.** `start()` opens one. When the service has not heard from it for too long it *expires*:
its ephemeral nodes are deleted, its watches are dropped, and each call raises `SessionExpired`
until `start()` is called again, which opens a new session with a new id. Losing the connection
alone ends nothing: the session is SUSPENDED, its calls wait for the connection to return, and its
watches stay (changes in the meantime fire them then). `close()` ends the session at once.
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
"""Maximum bytes of data in a node."""

ANY_VERSION = -1
"""As an expected version: any."""


class CoordinationError(BarnabasError):
    """The service rejected a call; `path` names the node. Nothing of a `multi` took effect."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class NoNode(CoordinationError):
    """The node, or the parent of the node to create, does not exist."""


class NodeExists(CoordinationError):
    """There is already a node at that path."""


class BadVersion(CoordinationError):
    """The node's version is not the expected one: another session wrote it."""


class NotEmpty(CoordinationError):
    """The node to delete has children."""


class NoChildrenForEphemerals(CoordinationError):
    """The parent of the node to create is ephemeral."""


class SessionExpired(CoordinationError):
    """The session has expired, or was never started; `start()` opens a new one."""

    def __init__(self, session_id: int) -> None:
        super().__init__("", f"session {session_id} has expired")


class ServiceUnavailable(CoordinationError):
    """No session could be opened in time; the message names the servers and the option."""

    retriable = True

    def __init__(self, message: str) -> None:
        super().__init__("", message)


class NoPermission(CoordinationError):
    """The node's ACL does not allow it, or the session's credentials were rejected."""


class EventType(Enum):
    """The kind of change that a watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


class Event(NamedTuple):
    """One change, as reported to a watch."""

    type: EventType
    path: str


Watch: TypeAlias = Callable[[Event], object]
"""Called on the event loop, once."""


class SessionState(Enum):
    """The state of a session.

    A service on this machine is always connected, so its sessions are never SUSPENDED.
    """

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


SessionListener: TypeAlias = Callable[[SessionState], object]
"""Called on the event loop after each change of state, until it is removed."""


class Contact(NamedTuple):
    """How long ago a session was last known to be alive, by the client's clock.

    Only what the service as a whole must have seen counts: a server that has lost the others may
    serve reads for a while after they have expired the session.
    """

    timeout_ms: int
    """The service expires the session when it has not heard from it for this long."""
    asked_ago_ms: float
    """How long ago the last answered request was sent: the session was alive then."""
    heard_ago_ms: float
    """How long ago its response arrived."""
    asked_s: float
    """When it was sent, by the session's own clock: unchanged until a newer one is answered."""


class Stat(NamedTuple):
    """The metadata of a node."""

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
    """Part of a `multi`: require that a node exists with this version. Its result is None."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | Stat | None
Found: TypeAlias = tuple[bytes, Stat]
"""A node's data and metadata."""


class Coordination(ABC):
    """One session with the service; see the top of this file for what holds for all calls.

    All calls belong to the event loop on which `start()` ran.
    """

    @property
    @abstractmethod
    def session_id(self) -> int:
        """The id of the current or last session; 0 before the first `start()`."""

    @property
    @abstractmethod
    def state(self) -> SessionState:
        """The state of the session; CLOSED before the first `start()`."""

    @property
    def contact(self) -> Contact | None:
        """When the session was last known to be alive; None if it has no timeout."""
        return None

    @abstractmethod
    def measure(self, record: Callable[[float], object]) -> None:
        """Call `record` with the seconds of each request that is answered from now on."""

    @abstractmethod
    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` after each change of the session's state; it outlives sessions."""

    @abstractmethod
    def remove_session_listener(self, listener: SessionListener) -> None:
        """Remove `listener`; an unknown one is ignored."""

    @abstractmethod
    async def start(self) -> None:
        """Open a session: the first, or the next one after an expiry. A no-op while one is open."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes are deleted when this returns. May be called again.

        While disconnected, the nodes are deleted when the service expires the session.
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
        """Return data and Stat of each node, None (and leave no watch) if it does not exist.

        Each is read as by `get`, but the reads are pipelined.
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
        """Apply all operations, each seeing those before it, or none; return a result for each.

        Raises the error of the first operation that cannot be done.
        """

    async def multi_each(
        self, batches: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | CoordinationError]:
        """Apply several `multi`s, each atomically; return its results, or why it failed.

        They are pipelined, so none may depend on another. Raises SessionExpired.
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
"""Characters ZooKeeper does not allow in names; to Java, those beyond 16 bits are surrogates."""


def check_path(path: str) -> str:
    """Return `path`; raise InvalidValueError unless it can name a node."""
    if path == "/":
        return path
    names = path.split("/")
    if names[0] or len(names) < 2 or any(n in ("", ".", "..") for n in names[1:]):
        raise InvalidValueError(f"{path!r} is not a node path; expected /name/name")
    refused = _REFUSED.search(path)
    if refused is not None:
        raise InvalidValueError(
            f"{path!r} is not a node path: ZooKeeper does not allow the character {refused[0]!r}"
        )
    return path


def parent_of(path: str) -> str:
    """Return the path of the parent; the root is its own parent."""
    return path[: path.rindex("/")] or "/"


def parents_of(path: str) -> list[str]:
    """Return the paths of all nodes between the root and `path`, exclusive, top first."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]

"""The tree of nodes as a plain state machine: given operations and the time, it returns changes.

It knows nothing of loops, files or links; `memory.py` and `embedded.py` add those. Nodes are
immutable values in one dict by path, so a change is (path, before, after): undoing it restores
`before`, and persisting it stores `after`.

Invariants: the parent of every node is in the tree; an ephemeral node belongs to an open session
and has no children; `zxid` never decreases, not even when changes are undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.coordination.contract import (
    ANY_VERSION,
    DATA_SIZE_MAX,
    BadVersion,
    Create,
    Delete,
    Event,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
    SessionExpired,
    Set,
    Stat,
    Watch,
    check_path,
    parent_of,
    parents_of,
)
from barnabas.model.errors import InvalidValueError

SEQUENCE_DIGITS = 10


class Node(NamedTuple):
    """One node, as a value."""

    data: bytes
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int = 0
    children_created: int = 0


class Change(NamedTuple):
    """A change of one node; None stands for no node."""

    path: str
    before: Node | None
    after: Node | None


class Fired(NamedTuple):
    """A watch to call."""

    session_id: int
    watch: Watch
    event: Event


class Outcome(NamedTuple):
    """The effect of a write: a result per operation, the changes and the watches, in order."""

    results: list[Result]
    changes: list[Change]
    fired: list[Fired]


class TreeSession:
    """An open session: when it expires (never, if it has no timeout) and its ephemeral nodes."""

    __slots__ = ("deadline_ms", "ephemerals", "timeout_ms")

    def __init__(self, timeout_ms: int | None, now_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.deadline_ms = None if timeout_ms is None else now_ms + timeout_ms
        self.ephemerals: dict[str, None] = {}


# Watches of one kind by path; the inner dict is an ordered set, so a watch set twice is kept once.
_Watches = dict[str, dict[tuple[int, Watch], None]]


class Tree:
    """Nodes, sessions and watches."""

    def __init__(self, nodes: Iterable[tuple[str, Node]] = (), zxid: int = 0) -> None:
        """Build the tree of `nodes`, in any order; raise NoNode if one lacks its parent."""
        self.zxid = zxid
        self.sessions: dict[int, TreeSession] = {}
        self._nodes: dict[str, Node] = {"/": Node(b"", 0, 0, 0)}
        # Paths of the children, only of nodes that have some: most nodes are leaves.
        self._children: dict[str, set[str]] = {}
        self._node_watches: _Watches = {}
        self._children_watches: _Watches = {}
        self._last_session_id = 0
        for path, node in nodes:
            self._nodes[path] = node
            if path != "/":
                self._children.setdefault(parent_of(path), set()).add(path)
        for path in self._children:
            if path not in self._nodes:
                raise NoNode(path, f"{path} is missing, the parent of {min(self._children[path])}")

    def __len__(self) -> int:
        return len(self._nodes)

    # Sessions

    def open_session(self, now_ms: int, timeout_ms: int | None = None) -> int:
        """Open a session that expires `timeout_ms` after its last heartbeat; return its id."""
        self._last_session_id += 1
        self.sessions[self._last_session_id] = TreeSession(timeout_ms, now_ms)
        return self._last_session_id

    def touch(self, session_id: int, now_ms: int) -> None:
        """Record a heartbeat of a session; raise SessionExpired if it has ended."""
        session = self._session(session_id)
        if session.timeout_ms is not None:
            session.deadline_ms = now_ms + session.timeout_ms

    def next_expiry_ms(self) -> int | None:
        """Return when the next session expires unless it sends a heartbeat."""
        return min(
            (s.deadline_ms for s in self.sessions.values() if s.deadline_ms is not None),
            default=None,
        )

    def expired(self, now_ms: int) -> list[int]:
        """Return the sessions that have expired, in the order they were opened."""
        return [
            session_id
            for session_id, session in self.sessions.items()
            if session.deadline_ms is not None and session.deadline_ms <= now_ms
        ]

    def end_session(self, session_id: int) -> Outcome:
        """End a session: drop its watches and delete its ephemeral nodes, in one transaction."""
        session = self._session(session_id)
        del self.sessions[session_id]
        for watches in (self._node_watches, self._children_watches):
            for path in [p for p, kept in watches.items() if any(w[0] == session_id for w in kept)]:
                kept = {w: None for w in watches[path] if w[0] != session_id}
                if kept:
                    watches[path] = kept
                else:
                    del watches[path]
        outcome = Outcome([], [], [])
        self.zxid += 1
        for path in list(session.ephemerals):
            self._delete(Delete(path), outcome)
        self._fire(outcome)
        return outcome

    # Writes

    def apply(self, operations: Sequence[Operation], session_id: int) -> Outcome:
        """Apply all operations in one transaction, or none and raise the first error."""
        self._session(session_id)
        outcome = Outcome([], [], [])
        self.zxid += 1
        try:
            for operation in operations:
                outcome.results.append(self._apply(operation, session_id, outcome))
        except Exception:
            self.undo(outcome.changes)
            raise
        # Only now, so that a transaction that fails fires no watches.
        self._fire(outcome)
        return outcome

    def create(self, operation: Create, session_id: int, make_parents: bool = False) -> Outcome:
        """Create one node, and with `make_parents` its missing parents."""
        missing: list[Operation] = []
        if make_parents:
            paths = parents_of(check_path(operation.path))
            missing = [Create(path) for path in paths if path not in self._nodes]
        outcome = self.apply([*missing, operation], session_id)
        return outcome._replace(results=outcome.results[-1:])

    def undo(self, changes: Sequence[Change]) -> None:
        """Undo the last changes; nodes whose session has ended are not restored."""
        for path, before, _ in reversed(changes):
            orphaned = before is not None and not self._is_alive(before)
            self._put(path, None if orphaned else before)

    # Reads

    def get(self, path: str, session_id: int, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat of a node."""
        self._session(session_id)
        node = self._node(check_path(path))
        if watch is not None:
            self._node_watches.setdefault(path, {})[session_id, watch] = None
        return node.data, self._stat(path, node)

    def exists(self, path: str, session_id: int, watch: Watch | None = None) -> Stat | None:
        """Return the Stat of a node, if it exists."""
        self._session(session_id)
        node = self._nodes.get(check_path(path))
        if watch is not None:
            self._node_watches.setdefault(path, {})[session_id, watch] = None
        return None if node is None else self._stat(path, node)

    def children(self, path: str, session_id: int, watch: Watch | None = None) -> list[str]:
        """Return the sorted names of a node's children."""
        self._session(session_id)
        self._node(check_path(path))
        if watch is not None:
            self._children_watches.setdefault(path, {})[session_id, watch] = None
        prefix = 1 if path == "/" else len(path) + 1
        return sorted(child[prefix:] for child in self._children.get(path, ()))

    # Inside

    def _session(self, session_id: int) -> TreeSession:
        try:
            return self.sessions[session_id]
        except KeyError:
            raise SessionExpired(session_id) from None

    def _node(self, path: str) -> Node:
        try:
            return self._nodes[path]
        except KeyError:
            raise NoNode(path, f"{path} does not exist") from None

    def _is_alive(self, node: Node) -> bool:
        return not node.ephemeral_owner or node.ephemeral_owner in self.sessions

    def _checked(self, path: str, version: int) -> Node:
        node = self._node(check_path(path))
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, f"{path} has version {node.version}, not {version}")
        return node

    def _stat(self, path: str, node: Node) -> Stat:
        children = self._children.get(path, ())
        return Stat(node.version, node.czxid, node.mzxid, node.ephemeral_owner, len(children))

    def _apply(self, operation: Operation, session_id: int, outcome: Outcome) -> Result:
        if isinstance(operation, Create):
            return self._create(operation, session_id, outcome)
        if isinstance(operation, Set):
            return self._set(operation, outcome)
        if isinstance(operation, Delete):
            self._delete(operation, outcome)
        else:
            self._checked(operation.path, operation.version)
        return None

    def _create(self, operation: Create, session_id: int, outcome: Outcome) -> str:
        path = check_path(operation.path)
        data = _checked_data(path, operation.data)
        parent_path = parent_of(path)
        parent = self._node(parent_path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(
                path, f"{parent_path} is ephemeral and cannot have children"
            )
        if operation.sequence:
            path += f"{parent.children_created:0{SEQUENCE_DIGITS}d}"
        if path in self._nodes:
            raise NodeExists(path, f"{path} already exists")
        owner = session_id if operation.ephemeral else 0
        node = Node(data, 0, self.zxid, self.zxid, owner)
        counted = parent._replace(children_created=parent.children_created + 1)
        self._change(parent_path, counted, outcome)
        self._change(path, node, outcome)
        return path

    def _set(self, operation: Set, outcome: Outcome) -> Stat:
        path = operation.path
        node = self._checked(path, operation.version)
        data = _checked_data(path, operation.data)
        node = node._replace(data=data, version=node.version + 1, mzxid=self.zxid)
        self._change(path, node, outcome)
        return self._stat(path, node)

    def _delete(self, operation: Delete, outcome: Outcome) -> None:
        path = operation.path
        self._checked(path, operation.version)
        if path == "/":
            raise InvalidValueError("the root cannot be deleted")
        if path in self._children:
            raise NotEmpty(path, f"{path} has {len(self._children[path])} children")
        self._change(path, None, outcome)

    def _change(self, path: str, after: Node | None, outcome: Outcome) -> None:
        outcome.changes.append(Change(path, self._nodes.get(path), after))
        self._put(path, after)

    def _put(self, path: str, node: Node | None) -> None:
        """Put `node` at `path`; keep the indexes of children and ephemerals up to date."""
        before = self._nodes.get(path)
        if node is not None:
            self._nodes[path] = node
            if before is None:
                self._children.setdefault(parent_of(path), set()).add(path)
                if node.ephemeral_owner:
                    self.sessions[node.ephemeral_owner].ephemerals[path] = None
        elif before is not None:
            del self._nodes[path]
            siblings = self._children[parent_of(path)]
            siblings.remove(path)
            if not siblings:
                del self._children[parent_of(path)]
            if before.ephemeral_owner in self.sessions:
                del self.sessions[before.ephemeral_owner].ephemerals[path]

    def _fire(self, outcome: Outcome) -> None:
        """Remove and return the watches that changes fire: the node's, then its parent's."""
        fired = outcome.fired
        for path, before, after in outcome.changes:
            if before is None:
                self._take(self._node_watches, path, Event(EventType.CREATED, path), fired)
            elif after is None:
                event = Event(EventType.DELETED, path)
                already_fired = self._take(self._node_watches, path, event, fired)
                self._take(self._children_watches, path, event, fired, already_fired)
            elif before.version != after.version:
                self._take(self._node_watches, path, Event(EventType.CHANGED, path), fired)
            if before is None or after is None:
                parent = parent_of(path)
                self._take(self._children_watches, parent, Event(EventType.CHILDREN, parent), fired)

    @staticmethod
    def _take(
        watches: _Watches,
        path: str,
        event: Event,
        fired: list[Fired],
        already_fired: Iterable[tuple[int, Watch]] = (),
    ) -> Iterable[tuple[int, Watch]]:
        taken = watches.pop(path, {})
        fired.extend(Fired(*watcher, event) for watcher in taken if watcher not in already_fired)
        return taken


def _checked_data(path: str, data: bytes) -> bytes:
    if len(data) > DATA_SIZE_MAX:
        raise InvalidValueError(
            f"{path}: {len(data)} bytes of data exceed the limit of {DATA_SIZE_MAX}"
        )
    return bytes(data)

"""Coordination inside the broker's process, kept in one SQLite file: no other service to run.

    store = EmbeddedStore(path)
    one, two = EmbeddedCoordination(store), EmbeddedCoordination(store)     # brokers of one process

The tree is in memory; the file is the durable copy. A write returns when its transaction is
committed with journal_mode=WAL and synchronous=FULL, which syncs the file at every commit: an
acknowledged write survives a power failure. Writes that arrive during a commit share the next one,
so a burst costs a few syncs instead of one each. The file is accessed only in the executor.

A commit that fails (a full disk) undoes its writes and all later ones; they raise StorageError, and
the tree matches the file again. Ephemeral nodes are never written: their sessions end with the
process. The file is opened by the first session, closed by the last, and locked in between.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from barnabas.coordination.contract import NoNode
from barnabas.coordination.session import StoreSession
from barnabas.coordination.store import Settled, Store
from barnabas.coordination.tree import Change, Node, Tree
from barnabas.model.errors import CorruptFileError, StorageError

FORMAT = 1
FILE_MODE = 0o600
"""Credentials and tokens are in the tree: nobody but the broker's user may read it."""

_SCHEMA = f"""
BEGIN;
CREATE TABLE node (
    path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL, czxid INTEGER NOT NULL,
    mzxid INTEGER NOT NULL, children_created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE last_transaction (zxid INTEGER NOT NULL);
INSERT INTO last_transaction VALUES (0);
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class _Batch:
    """Changes that are committed together, and the callbacks that wait for them."""

    __slots__ = ("changes", "waiting")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.waiting: list[Settled] = []

    def settle(self, failure: StorageError | None) -> None:
        for settled in self.waiting:
            settled(failure)


class EmbeddedStore(Store):
    """A tree kept in a SQLite file, shared by the sessions of this process."""

    def __init__(self, path: str | Path, executor: Executor | None = None) -> None:
        """Keep the tree at `path` (its directory must exist); `executor` None: the loop's own."""
        super().__init__()
        self.path = Path(path)
        self.commits = 0
        """Transactions committed since this object was created."""
        self._executor = executor
        self._file: _TreeFile | None = None
        self._users = 0
        self._gate = asyncio.Lock()
        self._next = _Batch()
        self._running: _Batch | None = None
        self._commit_asked = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(self) -> None:
        """Load the tree, unless it is already loaded.

        Raises CorruptFileError if the file is not a tree of ours, StorageError if it cannot be used
        (no such directory, no permission, in use by another process).
        """
        async with self._gate:
            if self._file is None:
                loop = asyncio.get_running_loop()
                file = _TreeFile(self.path)
                self.tree = await loop.run_in_executor(self._executor, file.load)
                self._file = file
                self._loop = loop
            self._users += 1

    async def release(self) -> None:
        """Close the file when its last user closes."""
        async with self._gate:
            self._users -= 1
            if not self._users and self._file is not None:
                await self._idle.wait()
                file, self._file = self._file, None
                await self._loop.run_in_executor(self._executor, file.close)

    def settle(self, changes: Sequence[Change], then: Settled) -> None:
        if changes or self._next.changes:
            self._next.changes.extend(changes)
            self._next.waiting.append(then)
            self._ask_commit()
        elif self._running is not None:
            self._running.waiting.append(then)
        else:
            then(None)

    def _ask_commit(self) -> None:
        if self._running is None and not self._commit_asked:
            # Not immediately: whatever else arrives in this loop iteration goes into the same
            # commit.
            self._commit_asked = True
            self._idle.clear()
            self._loop.call_soon(self._commit)

    def _commit(self) -> None:
        assert self._file is not None
        assert self._running is None
        self._commit_asked = False
        self._running, self._next = self._next, _Batch()
        rows = _rows(self._running.changes)
        commit = self._loop.run_in_executor(self._executor, self._file.write, rows, self.tree.zxid)
        commit.add_done_callback(self._committed)

    def _committed(self, commit: asyncio.Future[None]) -> None:
        batch, self._running = self._running, None
        assert batch is not None
        failure = commit.exception()
        if failure is None:
            self.commits += 1
            batch.settle(None)
        else:
            assert isinstance(failure, StorageError), failure
            # Later writes were decided on a state that was rolled back.
            later, self._next = self._next, _Batch()
            self.tree.undo(batch.changes + later.changes)
            batch.settle(failure)
            later.settle(failure)
        if self._next.changes:
            self._ask_commit()
        else:
            self._idle.set()


class EmbeddedCoordination(StoreSession):
    """A session with an EmbeddedStore."""


def _rows(changes: Sequence[Change]) -> dict[str, Node | None]:
    """Reduce changes to the final row per path: a node, or None for no row."""
    rows: dict[str, Node | None] = {}
    for path, before, after in changes:
        if after is not None and not after.ephemeral_owner:
            rows[path] = after
        elif before is not None and not before.ephemeral_owner:
            rows[path] = None
    return rows


class _TreeFile:
    """The SQLite file; each method runs in the executor, one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Tree:
        try:
            self._protect()
        except OSError as failure:
            raise StorageError(f"cannot open {self._path}: {failure.strerror}") from failure
        try:
            # The executor may run each call on a different thread, but never two at once.
            self._connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=0
            )
        except sqlite3.Error as failure:
            raise StorageError(f"cannot open {self._path}: {failure}") from failure
        try:
            return self._load()
        except BaseException:
            self._connection.close()
            raise

    def write(self, rows: dict[str, Node | None], zxid: int) -> None:
        """Write `rows` to the file, durably and atomically."""
        kept = [(path, *node[:4], node.children_created) for path, node in rows.items() if node]
        gone = [(path,) for path, node in rows.items() if node is None]
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            self._connection.executemany("REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?)", kept)
            self._connection.executemany("DELETE FROM node WHERE path = ?", gone)
            run("UPDATE last_transaction SET zxid = ?", (zxid,))
            run("COMMIT")
        except sqlite3.Error as failure:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise StorageError(f"cannot write {self._path}: {failure}") from failure

    def close(self) -> None:
        self._connection.close()

    def _protect(self) -> None:
        """Let nobody else read the file, nor what SQLite puts beside it, which has its mode."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            os.fchmod(descriptor, FILE_MODE)  # of a file that was created without it
        finally:
            os.close(descriptor)
        for beside in (Path(f"{self._path}-wal"), Path(f"{self._path}-shm")):
            if beside.exists():
                beside.chmod(FILE_MODE)

    def _load(self) -> Tree:
        run = self._connection.execute
        try:
            # An exclusive lock keeps out a second process, whose tree would diverge from ours.
            run("PRAGMA locking_mode = EXCLUSIVE")
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
            [(version,)] = run("PRAGMA user_version")
            [(tables,)] = run("SELECT count(*) FROM sqlite_schema")
            if version == 0 and tables == 0:
                self._connection.executescript(_SCHEMA)
            elif version != FORMAT:
                raise CorruptFileError(
                    f"{self._path}: format {version} is not supported; expected {FORMAT}"
                )
            [(verdict,)] = run("PRAGMA quick_check(1)")
            if verdict != "ok":
                raise CorruptFileError(f"{self._path}: {verdict}")
            [(zxid,)] = run("SELECT zxid FROM last_transaction")
            rows = run("SELECT path, data, version, czxid, mzxid, 0, children_created FROM node")
            return Tree(((row[0], Node._make(row[1:])) for row in rows), zxid)
        except sqlite3.OperationalError as failure:
            raise StorageError(f"cannot use {self._path}: {failure}") from failure
        except sqlite3.DatabaseError as failure:
            raise CorruptFileError(f"{self._path}: {failure}") from failure
        except (NoNode, ValueError) as failure:
            raise CorruptFileError(f"{self._path}: {failure}") from failure

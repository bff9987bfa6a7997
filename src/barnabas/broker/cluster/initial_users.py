"""Adds the users of `barnabas.initial.users.dir` to the cluster, at the start and later.

A file that appears while the broker runs is read within seconds. One that is unusable fails the
start; later it is logged once, and read again when it changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from barnabas.broker.loop import offload
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import CoordinationError
from barnabas.metadata.initial_user_store import InitialUserStore
from barnabas.model.errors import BarnabasError, ConfigError
from barnabas.security.initial_users import SUFFIX, InitialUser

logger = logging.getLogger("barnabas.authentication")

OPTION = "barnabas.initial.users.dir"
FILE_BYTES_MAX = 1 << 20

Stamp = tuple[int, int]
"""Modification time and size of a file."""


class InitialUsers:
    """Follows a directory with a file per user."""

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        store: InitialUserStore,
        executor: Executor | None,
    ) -> None:
        self._options = options
        self._store = store
        self._executor = executor
        self._seen: dict[Path, Stamp] = {}
        self._failure = ""

    @property
    def is_used(self) -> bool:
        """Whether there is a directory."""
        return self._options().barnabas_initial_users_dir is not None

    async def start(self) -> None:
        """Add all users; raise ConfigError if a file cannot be used."""
        directory = self._options().barnabas_initial_users_dir
        if directory is not None:
            await self._add_new(directory)

    async def look(self) -> None:
        """Add the users of new and changed files."""
        directory = self._options().barnabas_initial_users_dir
        if directory is None:
            return
        try:
            await self._add_new(directory)
            self._failure = ""
        except CoordinationError as failure:
            logger.warning("initial users: not added, trying again later: %s", failure)
        except BarnabasError as failure:
            if str(failure) != self._failure:
                self._failure = str(failure)
                logger.error("initial users: not added: %s", failure)

    async def _add_new(self, directory: str) -> None:
        for path, stamp in await offload(self._executor, _files, directory):
            if self._seen.get(path) == stamp:
                continue
            data = await offload(self._executor, _read, path)
            user = InitialUser.decode(str(path), data)
            if await self._store.add(user):
                logger.info("initial user %r added: acls=%d", user.name, len(user.acls))
            self._seen[path] = stamp


def _files(directory: str) -> list[tuple[Path, Stamp]]:
    """Return the files of a directory with what tells that one has changed."""
    try:
        found = sorted(Path(directory).iterdir())
        stats = [(path, path.stat()) for path in found if path.suffix == SUFFIX]
    except OSError as failure:
        raise ConfigError(
            f"{OPTION}={directory}: cannot be read: {failure.strerror or failure}"
        ) from failure
    return [(path, (stat.st_mtime_ns, stat.st_size)) for path, stat in stats]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX)
    except OSError as failure:
        raise ConfigError(f"{OPTION}: {path}: {failure.strerror or failure}") from failure

"""The ACLs of the cluster on this broker: loaded, followed by notices, and changed.

Every broker watches both lists of notices. A notice says which pattern changed, not how: its ACLs
are read again. With each new session everything is loaded again, because notices may have been
removed in between; until then the broker goes on deciding by what it knows. Notices that this
broker has known for a quarter of an hour are removed, and the oldest if there are too many.

One lock orders what this broker reads and writes, so that an older read never replaces a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.coordination.contract import Coordination, Event, NoNode, SessionExpired
from barnabas.metadata import acl_nodes as nodes
from barnabas.metadata.acl_store import AclStore, Change
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    BarnabasError,
    CorruptFileError,
    InvalidValueError,
    RequestError,
)
from barnabas.security.acl.authorizer import AclAuthorizer
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType, check_binding
from barnabas.security.acl.filter import BindingFilter

logger = logging.getLogger("barnabas.authorizer")

NOTICE_KEPT_MS = 15 * 60 * 1000
"""How long a notice is kept, since this broker first saw it: every other has seen it by then."""

NOTICES_MAX = 1000
"""How many notices of a kind are kept: each change lists them all."""

RETRY_S = 1.0
"""How long to wait before reading again what could not be read."""


class Acls:
    """Keeps an authorizer's ACLs equal to those in the tree."""

    def __init__(
        self,
        tree: Coordination,
        store: AclStore,
        authorizer: AclAuthorizer,
        now_ms: Callable[[], int],
    ) -> None:
        self._tree = tree
        self._store = store
        self._authorizer = authorizer
        self._now_ms = now_ms
        self._seen: dict[PatternType, deque[tuple[str, int]]] = {
            each: deque() for each in PatternType
        }
        """Notices that were acted upon, oldest first, and when this broker first saw them."""
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Load all ACLs and follow the notices, at the start or after a lost session."""
        async with self._lock:
            await self._store.create_paths()
            for pattern_type in PatternType:
                await self._new_notices(pattern_type)  # what is read from now on includes them
            bindings = await self._store.load()
            self._authorizer.load(bindings)
        logger.info("ACLs loaded: count=%d", len(bindings))

    def stop(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()

    # changes

    async def create(self, bindings: Sequence[Binding]) -> list[RequestError | None]:
        """Add ACLs; return what is wrong with each."""
        errors: list[RequestError | None] = [None] * len(bindings)
        by_pattern: dict[Pattern, list[int]] = defaultdict(list)
        for number, binding in enumerate(bindings):
            try:
                check_binding(binding)
            except InvalidValueError as failure:
                errors[number] = RequestError(ErrorCode.INVALID_REQUEST, str(failure))
            else:
                by_pattern[binding.pattern].append(number)
        for pattern, numbers in by_pattern.items():
            added = {bindings[number].entry for number in numbers}
            failed = await self._update(pattern, added.union)
            for number in numbers:
                errors[number] = failed
        return errors

    async def delete(
        self, filters: Sequence[BindingFilter]
    ) -> list[list[tuple[Binding, RequestError | None]]]:
        """Remove the ACLs that filters match; return them, each at its first filter."""
        matched: list[list[Binding]] = []
        doomed: dict[Pattern, set[Entry]] = defaultdict(set)
        for each in filters:
            found = [
                binding
                for binding in self._authorizer.find(each)
                if binding.entry not in doomed[binding.pattern]
            ]
            for binding in found:
                doomed[binding.pattern].add(binding.entry)
            matched.append(found)
        failures: dict[Pattern, RequestError | None] = {}
        for pattern, entries in doomed.items():
            if entries:
                failures[pattern] = await self._update(pattern, _without(entries))
        return [[(binding, failures[binding.pattern]) for binding in found] for found in matched]

    async def _update(self, pattern: Pattern, change: Change) -> RequestError | None:
        """Change the ACLs of a pattern in the tree, then here; return why that failed."""
        try:
            async with self._lock:
                with refused_as():
                    entries = await self._store.update(pattern, change)
                self._authorizer.set_entries(pattern, entries)
        except RequestError as refusal:
            if refusal.code is ErrorCode.NOT_CONTROLLER:  # the client finds another broker
                raise
            return refusal
        except InvalidValueError as failure:  # a name that the tree does not accept
            return RequestError(ErrorCode.INVALID_REQUEST, str(failure))
        return None

    # notices

    async def _new_notices(self, pattern_type: PatternType) -> list[str]:
        """Return the notices that appeared since the last call, and watch for the next."""
        seen = self._seen[pattern_type]
        names = await self._tree.children(nodes.CHANGES[pattern_type], self._watch)
        new = names[bisect_right(names, seen[-1][0]) :] if seen else names
        now_ms = self._now_ms()
        seen.extend((name, now_ms) for name in new)
        return new

    def _watch(self, event: Event) -> None:
        for pattern_type, parent in nodes.CHANGES.items():
            if event.path == parent:
                task = asyncio.get_running_loop().create_task(self._follow(pattern_type))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _follow(self, pattern_type: PatternType) -> None:
        try:
            async with self._lock:
                parent = nodes.CHANGES[pattern_type]
                for name in await self._new_notices(pattern_type):
                    await self._apply(f"{parent}/{name}", pattern_type)
                await self._sweep(pattern_type)
        except SessionExpired:
            return  # `start` is called with the next session
        except BarnabasError as failure:
            logger.error(
                "ACL changes could not be read, deciding by the ACLs of before, loading all again "
                "in %s s: %s",
                RETRY_S,
                failure,
            )
            await asyncio.sleep(RETRY_S)
            await self._reload()

    async def _reload(self) -> None:
        while True:
            try:
                await self.start()
                return
            except SessionExpired:
                return
            except BarnabasError as failure:
                logger.error("ACLs could not be loaded, trying again in %s s: %s", RETRY_S, failure)
                await asyncio.sleep(RETRY_S)

    async def _apply(self, path: str, pattern_type: PatternType) -> None:
        """Read again the ACLs that a notice names."""
        try:
            data, _ = await self._tree.get(path)
            pattern = nodes.decode_notice(path, data, pattern_type)
            entries = await self._store.get(pattern)
        except NoNode:
            return  # removed as an old notice by another broker: `start` has loaded its change
        except CorruptFileError as failure:
            logger.error("ACL change %s skipped: %s", path, failure)
            return
        self._authorizer.set_entries(pattern, entries)

    async def _sweep(self, pattern_type: PatternType) -> None:
        """Remove old notices, but never the newest, by which new ones are told apart."""
        parent, seen = nodes.CHANGES[pattern_type], self._seen[pattern_type]
        oldest_ms = self._now_ms() - NOTICE_KEPT_MS
        while len(seen) > 1 and (seen[0][1] < oldest_ms or len(seen) > NOTICES_MAX):
            name, _ = seen.popleft()
            try:
                await self._tree.delete(f"{parent}/{name}")
            except NoNode:
                continue


def _without(entries: set[Entry]) -> Change:
    return lambda old: old - entries

"""The topics in the tree, with their assignments; unreadable ones are ignored.

A topic created before topics had ids is given one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.knowledge import Topic
from barnabas.controller.leadership import Assignment
from barnabas.coordination.contract import BadVersion, Set, Watch
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import ZERO_UUID, Uuid

logger = logging.getLogger("barnabas.controller")


class Catalogue:
    """Reads topics, leaving a watch for the next change to each."""

    def __init__(self, tree: GuardedTree, new_topic_id: Callable[[], Uuid], changed: Watch) -> None:
        self._tree = tree
        self._new_topic_id = new_topic_id
        self._changed = changed

    async def read(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return the topics that still exist."""
        paths = {name: nodes.topic_path(name) for name in names}
        found = await self._tree.tree.get_many(list(paths.values()), self._changed)
        topics: dict[str, Topic] = {}
        overtaken: list[str] = []
        for (name, path), got in zip(paths.items(), found, strict=True):
            if got is None:
                continue
            try:
                node = nodes.TopicAssignment.decode(path, got[0])
            except CorruptFileError as failure:
                logger.error("topic %s: metadata unreadable, topic ignored: %s", name, failure)
                continue
            if node.topic_id == ZERO_UUID:
                node = nodes.TopicAssignment(
                    self._new_topic_id(), node.replicas, node.adding, node.removing
                )
                try:
                    await self._tree.write([Set(path, node.encode(), got[1].version)])
                except BadVersion:
                    overtaken.append(name)
                    continue
            topics[name] = Topic(node.topic_id, _assignments(node))
        return topics | await self.read(overtaken) if overtaken else topics


def _assignments(node: nodes.TopicAssignment) -> dict[int, Assignment]:
    return {
        number: Assignment(
            tuple(replicas),
            tuple(node.adding.get(number, ())),
            tuple(node.removing.get(number, ())),
        )
        for number, replicas in node.replicas.items()
    }

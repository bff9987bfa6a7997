"""User hooks around what a consumer reads and commits (interceptor.classes).

An interceptor is any object with some of the methods `on_consume(records)` (gets polled records
by partition, and may return other records or none), `on_commit(offsets)` and `close()`. One that
fails is logged and skipped: hooks watch, they do not stop a consumer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

_log = logging.getLogger(__name__)


class Interceptors:
    """The hooks of one consumer, called one after another."""

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        self._hooks = tuple(hook() if isinstance(hook, type) else hook for hook in hooks)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def on_consume(
        self, records: dict[TopicPartition, list[Any]]
    ) -> dict[TopicPartition, list[Any]]:
        """Pass polled records through the hooks; return what the user gets."""
        for hook in self._hooks:
            changed = _call(hook, "on_consume", records)
            records = records if changed is None else changed
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Pass committed offsets to the hooks."""
        for hook in self._hooks:
            _call(hook, "on_commit", offsets)

    def close(self) -> None:
        """Close the hooks."""
        for hook in self._hooks:
            _call(hook, "close")


def _call(hook: Any, name: str, *arguments: Any) -> Any:
    method = getattr(hook, name, None)
    if method is None:
        return None
    try:
        return method(*arguments)
    except Exception:  # noqa: BLE001  # user code may raise anything; it is logged in full
        _log.exception("interceptor %r is skipped: failed in %s", hook, name)
        return None

"""Responses in the shape that users of kafka-python know, and the failures among them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.admin.acls import ACLOperation
from barnabas.errors import NoError
from barnabas.model.errors import RequestError
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid


class Answer(dict[str, Any]):
    """A response as a dict, whose fields can also be read as attributes.

    Release 3 of kafka-python returns dicts, earlier ones returned objects. `topic_errors` and
    `topic_error_codes` are the names that those objects had for the results of topics.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the response has {', '.join(self)}, not {name!r}") from None

    @property
    def topic_errors(self) -> list[tuple[str, int, str | None]]:
        """Return (topic, error code, message) of each topic."""
        return [(each["name"], each["error_code"], each["error_message"]) for each in self._each()]

    @property
    def topic_error_codes(self) -> list[tuple[str, int]]:
        """Return (topic, error code) of each topic."""
        return [(each["name"], each["error_code"]) for each in self._each()]

    def _each(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("topics", self.get("results", []))
        return found


def code_of(error: RequestError | None) -> int:
    """Return the number of an error, 0 for none."""
    return 0 if error is None else int(error.code)


def message_of(error: RequestError | None) -> str | None:
    """Return the message of an error, None for none."""
    return None if error is None else str(error)


def class_of(error: RequestError | None) -> type[RequestError]:
    """Return the class of an error, `NoError` for none."""
    return NoError if error is None else type(error)


def id_text(topic_id: Uuid) -> str | None:
    """Return a topic id as a string, None if unknown."""
    return None if topic_id == ZERO_UUID else str(uuid.UUID(bytes=topic_id))


def names_of(operations: Iterable[ACLOperation] | None) -> list[str] | None:
    """Return the names of operations in the order of their numbers."""
    return None if operations is None else [operation.name for operation in sorted(operations)]


def raise_first(errors: Iterable[RequestError | None]) -> None:
    """Raise the first error, if there is one."""
    for error in errors:
        if error is not None:
            raise error


def partitions_of(
    given: Mapping[str, Iterable[int]] | Iterable[TopicPartition],
) -> list[TopicPartition]:
    """Parse `{topic: [partition, …]}`, or a list of partitions."""
    if isinstance(given, Mapping):
        return [
            TopicPartition(topic, index) for topic, indexes in given.items() for index in indexes
        ]
    return [TopicPartition(*partition) for partition in given]

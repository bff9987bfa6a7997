"""The rows of a sink: which columns it takes, and to which topic each row is sent.

    value      string or binary; required, and null only with a key
    key        string or binary
    topic      string; required without the option `topic`, which overrides it
    partition  int
    headers    array<struct<key: string, value: binary>>
    timestamp  timestamp

Other columns are ignored, so that rows that were read can be written as they are. A partition or
timestamp that is null is chosen by the producer; a topic that is null is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import InvalidValueError

if TYPE_CHECKING:
    import pyarrow as pa

_SENT = ("value", "key", "partition", "headers", "timestamp")


class SinkRows:
    """Converts each Arrow batch to the arguments of a producer's `send_arrow`."""

    def __init__(self, layout: pa.Schema, topic: str | None) -> None:
        """Check the columns; `topic` is that of all rows, None: use the column."""
        self._topic = topic
        names = layout.names
        if "value" not in names:
            raise InvalidValueError(
                f"rows must have the column value; they have {', '.join(names)}"
            )
        if topic is None and "topic" not in names:
            raise InvalidValueError(
                "the rows have no topic: set the option topic, or add a column topic; the rows "
                f"have {', '.join(names)}"
            )
        for name, (wanted, fits) in _checks().items():
            if name in names and not (name == "topic" and topic is not None):
                kind = layout.field(name).type
                if not fits(kind):
                    raise InvalidValueError(f"the column {name} is {kind}: must be {wanted}")
        self._columns = [name for name in _SENT if name in names]

    def parts(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of a batch by topic."""
        if "headers" in self._columns:
            _check_headers(batch.column("headers"))
        if self._topic is not None:
            yield self._topic, batch.select(self._columns)
            return
        import pyarrow.compute as pc

        topics = batch.column("topic")
        if topics.null_count:
            row = pc.index(pc.is_null(topics), True).as_py()
            raise InvalidValueError(f"the topic of row {row} of a batch is null")
        names = pc.unique(topics).to_pylist()
        for name in names:
            part = batch if len(names) == 1 else batch.filter(pc.equal(topics, name))
            yield name, part.select(self._columns)


def _check_headers(headers: Any) -> None:
    pairs = headers.flatten()
    if pairs.null_count or pairs.field("key").null_count:
        raise InvalidValueError(
            "a header of a row, or its key, is null: a header must have a key; its value may be "
            "null, and so may the headers of a row"
        )


def _checks() -> dict[str, Any]:
    from pyarrow import types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_string(kind))

    def is_headers(kind: Any) -> bool:
        return (
            types.is_list(kind)
            and types.is_struct(kind.value_type)
            and [field.name for field in kind.value_type] == ["key", "value"]
            and types.is_string(kind.value_type.field(0).type)
            and types.is_binary(kind.value_type.field(1).type)
        )

    return {
        "value": ("string or binary", is_bytes),
        "key": ("string or binary", is_bytes),
        "topic": ("string", types.is_string),
        "partition": ("int", types.is_int32),
        "headers": ("array<struct<key: string, value: binary>>", is_headers),
        "timestamp": ("timestamp", types.is_timestamp),
    }

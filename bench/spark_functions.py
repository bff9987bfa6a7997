"""What a user's job does in Python, on Arrow batches: the same for both connectors.

`lengths`, `amounts` and `fields` are for `transform`, those with `each_` for `mapInArrow`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

LENGTHS = "key BINARY, size INT"
AMOUNTS = "state STRING, amount INT"


def lengths(batch: Any) -> Any:
    """Return the length of each value, by functions of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.binary_length(batch.column("value"))
    return pa.RecordBatch.from_arrays([batch.column("key"), sizes], ["key", "size"])


def amounts(batch: Any) -> Any:
    """Return two fields of each value, which is a JSON object."""
    import pyarrow as pa

    documents = [json.loads(value) for value in batch.column("value").to_pylist()]
    states = pa.array([each["state"] for each in documents], pa.string())
    found = pa.array([each["amount"] for each in documents], pa.int32())
    return pa.RecordBatch.from_arrays([states, found], ["state", "amount"])


def fields(batch: Any) -> Any:
    """Return two fields of each value, which was JSON and has been read already."""
    import pyarrow as pa

    value = batch.column("value")
    columns = [value.field("state"), value.field("amount")]
    return pa.RecordBatch.from_arrays(columns, ["state", "amount"])


def each_lengths(batches: Iterable[Any]) -> Iterator[Any]:
    return map(lengths, batches)


def each_amounts(batches: Iterable[Any]) -> Iterator[Any]:
    return map(amounts, batches)


def each_fields(batches: Iterable[Any]) -> Iterator[Any]:
    return map(fields, batches)

"""JSON values as structs of inferred fields: by Arrow's reader, or object by object.

Arrow reads a batch at once, and refuses it whole if one value is not as the fields say. Such a
batch, and one with fields of several kinds, is read by Python's reader, which tells of each value
that does not fit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from barnabas.spark.text_values import parse_json
from barnabas.sql.inference import Fields, fit, has_mixed

if TYPE_CHECKING:
    import pyarrow as pa


class JsonReader:
    """Reads values as structs."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._plain = not has_mixed(fields)

    def __call__(self, values: pa.BinaryArray, kind: pa.StructType) -> tuple[pa.Array, pa.Array]:
        """Return structs, and why those that are null could not be read."""
        import pyarrow as pa

        texts = values.to_pylist()
        if self._plain:
            found = self._at_once(texts, kind)
            if found is not None:
                return found, pa.nulls(len(texts), pa.string())
        return self._one_by_one(texts, kind)

    def _at_once(self, texts: list[bytes | None], kind: pa.StructType) -> pa.Array | None:
        """Return what Arrow reads; None if it refuses a value."""
        import pyarrow as pa

        present = [text for text in texts if text is not None]
        if not all(text and b"\n" not in text and b"\r" not in text for text in present):
            return None
        try:
            found = parse_json(present, kind) if present else pa.array([], kind)
        except pa.ArrowInvalid:
            return None
        if len(found) != len(present):
            return None
        if len(present) == len(texts):
            return found
        numbers = iter(range(len(present)))
        places = [None if text is None else next(numbers) for text in texts]
        return found.take(pa.array(places, pa.int64()))

    def _one_by_one(
        self, texts: list[bytes | None], kind: pa.StructType
    ) -> tuple[pa.Array, pa.Array]:
        import pyarrow as pa

        found: list[dict[str, Any] | None] = []
        errors: list[str | None] = []
        for text in texts:
            value, error = None, None
            if text is not None:
                try:
                    value = fit(json.loads(text), self._fields)
                except ValueError as failure:
                    error = str(failure)
            found.append(value)
            errors.append(error)
        return pa.array(found, kind), pa.array(errors, pa.string())

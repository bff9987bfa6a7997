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
        if self._plain and all(text and b"\n" not in text and b"\r" not in text for text in texts):
            try:
                found = parse_json(texts, kind) if texts else pa.array([], kind)
            except pa.ArrowInvalid:
                found = None
            if found is not None and len(found) == len(texts):
                return found, pa.nulls(len(texts), pa.string())
        return self._one_by_one(texts, kind)

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

"""JSON values as structs of inferred fields: by Arrow's parser, or object by object.

Arrow parses a batch at once, and rejects it whole if one value does not match the fields. Such a
batch, and one with fields of several kinds, is parsed by Python, which reports each value that
does not match.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from barnabas.spark.values.objects import read_objects
from barnabas.spark.values.text import parse_json, spread
from barnabas.sql.inference import Fields, fit, has_mixed

if TYPE_CHECKING:
    import pyarrow as pa


class JsonReader:
    """Parses values as structs."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._plain = not has_mixed(fields)

    def __call__(self, values: pa.BinaryArray, kind: pa.StructType) -> tuple[pa.Array, pa.Array]:
        """Return structs, and the reason for those that are null."""
        import pyarrow as pa

        if self._plain:
            found = self._at_once(values, kind)
            if found is not None:
                return found, pa.nulls(len(values), pa.string())
        return read_objects(values, kind, self._object, str)

    def _at_once(self, values: pa.BinaryArray, kind: pa.StructType) -> pa.Array | None:
        """Return the result of Arrow's parser; None if it rejects a value."""
        import pyarrow as pa

        present = values.drop_null().to_pylist()
        try:
            found = parse_json(present, kind) if present else pa.array([], kind)
        except pa.ArrowInvalid:
            return None
        return spread(found, values)

    def _object(self, text: bytes) -> Any:
        return fit(json.loads(text), self._fields)

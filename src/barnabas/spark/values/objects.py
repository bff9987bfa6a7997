"""Values that are decoded one by one, as Python objects, and become a column together.

A bad value does not affect the others: bytes that cannot be decoded, and objects that do not fit
the column (a number that is too large, half of a character), become null, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def read_objects(
    values: pa.BinaryArray,
    kind: pa.DataType,
    decode: Callable[[bytes], Any],
    explain: Callable[[Exception], str],
) -> tuple[pa.Array, pa.Array]:
    """Return the decoded values, and the reason for those that are null."""
    import pyarrow as pa

    found: list[Any] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        error = None
        try:
            found.append(None if value is None else decode(value))
        except Exception as failure:  # noqa: BLE001  # arbitrary bytes: no common class
            found.append(None)
            error = explain(failure)
        errors.append(error)
    return _column(found, errors, kind, explain), pa.array(errors, pa.string())


def _column(
    found: list[Any],
    errors: list[str | None],
    kind: pa.DataType,
    explain: Callable[[Exception], str],
) -> pa.Array:
    import pyarrow as pa

    misfits = (ValueError, TypeError, OverflowError)  # Arrow's own errors are some of these
    try:
        return pa.array(found, kind)
    except misfits:
        pass
    cells = []
    for row, each in enumerate(found):
        try:
            cells.append(pa.array([each], kind))
        except misfits as failure:
            cells.append(pa.nulls(1, kind))
            errors[row] = explain(failure)
    return pa.concat_arrays(cells)

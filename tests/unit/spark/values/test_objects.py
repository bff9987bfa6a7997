"""Values that become Python objects first: one that has no place harms none beside it."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas.spark.values.objects import read_objects  # noqa: E402


def test_what_cannot_be_read_and_what_does_not_fit_are_null_and_say_why() -> None:
    values = pa.array([b"1", b"x", None, b"70000", b"2"], pa.binary())
    found, errors = read_objects(values, pa.int16(), int, lambda failure: type(failure).__name__)
    assert found.to_pylist() == [1, None, None, None, 2]
    assert errors.to_pylist() == [None, "ValueError", None, "ArrowInvalid", None]


def test_there_may_be_none() -> None:
    found, errors = read_objects(pa.array([], pa.binary()), pa.int16(), int, str)
    assert (found.to_pylist(), errors.to_pylist()) == ([], [])

"""Topic names: what is legal, and what collides."""

from __future__ import annotations

import pytest

from barnabas.metadata.topic_names import check_collision, check_name, illegal_name
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets", "-"])
def test_good_names(name: str) -> None:
    check_name(name)
    assert illegal_name(name) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * 250, "a b", "ü", "a/b", "a\n", "a\0", "٣", "*"]
)
def test_bad_names(name: str) -> None:
    with pytest.raises(RequestError) as refusal:
        check_name(name)
    assert refusal.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refusal.value.message


def test_collisions() -> None:
    """Dots and underscores are one in metric names."""
    for name, other in (("a.b", "a_b"), ("a_b", "a.b"), ("a._b", "a__b")):
        with pytest.raises(RequestError, match=repr(other)):
            check_collision(name, ["x", other])
    check_collision("a.b", ["a.b", "ab", "a-b", "a.bc"])
    check_collision("ab", ["a.b"])


def test_the_reason_says_whose_name_it_is() -> None:
    assert illegal_name("a b", "group.instance.id") == (
        "group.instance.id 'a b' is not allowed: only letters, digits, '.', '_' and '-'"
    )

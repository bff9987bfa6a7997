"""Which topics are copied: whole names, no internal ones, never a mirror's own notes."""

from __future__ import annotations

import pytest

from barnabas.mirror.selection import Selection
from barnabas.model.errors import InvalidValueError


def test_whole_names_match_any_of_the_patterns() -> None:
    selection = Selection(["orders", "pay.*"])
    assert selection.wants("orders")
    assert selection.wants("payments")
    assert not selection.wants("orders-2")
    assert not selection.wants("repay")


def test_excluded_names_are_left_out() -> None:
    selection = Selection([".*"], ["test-.*", "tmp"])
    assert selection.wants("orders")
    assert not selection.wants("test-1")
    assert not selection.wants("tmp")


@pytest.mark.parametrize("name", ["__consumer_offsets", "__other", "barnabas-mirror.abc"])
def test_what_clusters_and_mirrors_keep_for_themselves_is_not_copied(name: str) -> None:
    assert not Selection([".*"]).wants(name)


def test_internal_topics_are_not_copied_whatever_their_names() -> None:
    assert not Selection([".*"]).wants("orders", internal=True)


def test_a_prefix_goes_before_the_name() -> None:
    assert Selection(["a"], prefix="old.").target_name("a") == "old.a"


def test_a_broken_pattern_is_named_with_its_option() -> None:
    with pytest.raises(InvalidValueError, match=r"--exclude: 'a\(' is not a regular expression"):
        Selection(["a"], ["a("])


def test_no_pattern_at_all_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="--topics"):
        Selection([])

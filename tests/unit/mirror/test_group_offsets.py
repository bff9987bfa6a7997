"""A search finds what reading everything would, whatever is between the copied records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.mirror.group_offsets import OffsetSearch


def searched(wanted: int, start: int, end: int, origins: dict[int, int]) -> tuple[int, int]:
    """Return the answer, and how many probes it took."""
    search = OffsetSearch(wanted, start, end)
    probes = 0
    while (probe := search.probe) is not None:
        probes += 1
        assert start <= probe.offset < probe.end <= end
        first = next((at for at in range(probe.offset, probe.end) if at in origins), None)
        if first is None:
            search.found_nothing()
        else:
            search.found(first, origins[first])
    return search.answer, probes


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=60),
    st.integers(0, 2500),
    st.integers(0, 50),
    st.integers(0, 100),
)
def test_the_first_record_at_or_after_the_wanted_one(
    steps: list[tuple[int, int]], wanted: int, start: int, rest: int
) -> None:
    origins: dict[int, int] = {}
    here, there = start, 0
    for forward, further in steps:
        here, there = here + forward, there + further
        origins[here] = there
    end = here + 1 + rest
    expected = next((at for at, origin in origins.items() if origin >= wanted), end)
    assert searched(wanted, start, end, origins)[0] == expected


def test_a_long_log_takes_few_probes() -> None:
    origins = {at: at - at // 100 for at in range(100_000) if at % 100}
    answer, probes = searched(55_555, 0, 100_000, origins)
    assert origins[answer] >= 55_555
    assert origins[answer - 1 if answer - 1 in origins else answer - 2] < 55_555
    assert probes < 100


def test_an_empty_log_has_its_end() -> None:
    assert searched(5, 3, 3, {}) == (3, 0)

"""What is drawn fits the terminal, whatever its size and whatever names contain."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.unit.cli.top.samples import ORDERS, sample, topic

from barnabas.cli.top.controls import Controls
from barnabas.cli.top.page import read_page
from barnabas.cli.top.reading import Reading, compare
from barnabas.cli.top.sample import GroupSample, Waiting
from barnabas.cli.top.screen import Line, lines_of, share_rows
from barnabas.model.ids import TopicPartition

P0 = TopicPartition("orders", 0)
FIRST = {("orders", 0): 100, ("orders", 1): 50}
SECOND = {("orders", 0): 5_300, ("orders", 1): 60}


def reading(groups: int = 3, name: str = "billing") -> Reading:
    def page(count: int) -> str:
        return (
            "kafka_network_requestmetrics_requests_total"
            f'{{request="Produce",version="9"}} {count}\n'
        )

    pairs = [
        sample(
            at_s,
            ends,
            topics=(ORDERS, topic("audit", (1, (1, 2), (1,)))),
            groups={
                f"{name}-{number}": GroupSample("Stable", {P0: number}, {}, Waiting(90_000, True))
                for number in range(groups)
            },
            pages={1: read_page(page(count)), 2: read_page(page(count))},
        )
        for at_s, ends, count in ((10.0, FIRST, 0), (12.0, SECOND, 40))
    ]
    return compare(*pairs)


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def test_everything_is_there_without_a_height() -> None:
    shown = lines_of(reading(), Controls(), 200, None)
    text = "\n".join(texts(shown))
    assert "controller 2" in text
    assert "in 2,605 records/s" in text
    assert "under-replicated 1" in text
    for name in ("billing-0", "billing-2", "orders", "audit", "one:9092", "Produce"):
        assert name in text
    assert "≥ 90.0 s" in text
    assert [line.kind for line in shown if "1 under-replicated" in line.text] == ["bad"]


def test_a_narrow_terminal_keeps_what_matters() -> None:
    shown = texts(lines_of(reading(), Controls(), 40, 30))
    (head,) = [line for line in shown if line.startswith("group ")]
    assert "lag" in head
    assert "behind" in head
    assert "in/s" not in head
    assert max(map(cell_len, shown)) <= 40


def test_rows_that_do_not_fit_are_counted() -> None:
    shown = texts(lines_of(reading(groups=50), Controls(), 120, 24))
    assert len(shown) <= 24
    (head,) = [line for line in shown if line.startswith("group ")]
    listed = sum(line.startswith("billing-") for line in shown)
    assert head.endswith(f"(+{50 - listed})")
    assert any(line.startswith("orders") for line in shown), "other tables have some rows"


@given(
    st.integers(1, 160),
    st.integers(1, 60),
    st.integers(0, 12),
    st.text(max_size=30),
    st.text(max_size=40),
)
def test_any_terminal_is_large_enough(
    width: int, height: int, groups: int, name: str, trouble: str
) -> None:
    found = replace(reading(groups, name), missing=(trouble,))
    shown = texts(lines_of(found, Controls(), width, height))
    assert len(shown) <= height
    assert all(cell_len(line) <= max(width, 1) for line in shown)
    assert all(line.isprintable() for line in shown)


def test_what_is_missing_and_a_pause_are_said() -> None:
    controls = Controls()
    controls.press(" ")
    found = replace(reading(), missing=("offsets: not allowed (TOPIC_AUTHORIZATION_FAILED)",))
    shown = texts(lines_of(found, controls, 200, None))
    assert "! offsets: not allowed (TOPIC_AUTHORIZATION_FAILED)" in shown
    assert "paused" in shown[0]


def test_bytes_that_are_a_growth_are_marked() -> None:
    shown = "\n".join(texts(lines_of(compare(None, sample(1.0, FIRST)), Controls(), 200, None)))
    assert "in/s*" in shown
    assert "first sample" in shown
    assert "requests" not in shown
    assert "in/s*" not in "\n".join(texts(lines_of(reading(), Controls(), 200, None)))


def test_the_help_names_the_keys() -> None:
    controls = Controls()
    controls.press("h")
    assert "q  quit" in texts(lines_of(reading(), controls, 80, 24))


def test_rows_are_shared() -> None:
    assert share_rows(100, [3, 2, 0, 4]) == [3, 2, 0, 4]
    assert share_rows(12, [50, 50]) == [4, 4]
    assert share_rows(8, [50, 50]) == [2, 2]
    assert share_rows(7, [50, 50]) == [5, 0], "there is no room for the second"
    assert share_rows(2, [50]) == [0]
    assert share_rows(-5, [1]) == [0]

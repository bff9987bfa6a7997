"""New segments follow the topic's options."""

from __future__ import annotations

from pathlib import Path

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.rolling import Rolling

NOW = 1_700_000_000_000


def rolling(drawn: float = 0.5, **given: str) -> Rolling:
    values = {name.replace("_", "."): value for name, value in given.items()}
    return Rolling(TopicOptions.parse(values), lambda: drawn)


def test_the_jitter_is_a_share_of_the_shorter_of_its_bound_and_the_time_to_roll() -> None:
    assert rolling().draw_jitter_ms() == 0
    assert rolling(segment_jitter_ms="1000").draw_jitter_ms() == 500
    assert rolling(0.25, segment_jitter_ms="1000", segment_ms="400").draw_jitter_ms() == 100


def test_a_new_segment_is_empty_and_knows_its_beginning(tmp_path: Path) -> None:
    pool = FilePool(DiskFiles())
    made = rolling(segment_jitter_ms="10").create(pool, str(tmp_path), 7, NOW)
    assert (made.base_offset, made.size_bytes, made.created_ms, made.jitter_ms) == (7, 0, NOW, 5)
    assert (tmp_path / "00000000000000000007.log").stat().st_size == 0
    made.let_go()


def test_a_file_is_made_as_large_as_it_may_become_where_the_topic_asks_for_it(
    tmp_path: Path,
) -> None:
    pool = FilePool(DiskFiles())
    made = rolling(preallocate="true", segment_bytes="5000").create(pool, str(tmp_path), 0, NOW)
    assert made.size_bytes == 0
    assert (tmp_path / "00000000000000000000.log").stat().st_size == 5000
    made.let_go()

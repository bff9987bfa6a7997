"""The Cython source that is written for a struct."""

from __future__ import annotations

from barnabas.wire.cython_source import Source, StructSource, class_name, function_name
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def test_names_tell_the_api_and_the_struct() -> None:
    assert function_name(FetchRequest) == "fetch_request"
    assert function_name(FetchTopic) == "fetch_topic"
    assert class_name(FetchPartition) == "FETCH_PARTITION"


def test_blocks_indent_and_long_lines_break() -> None:
    source = Source()
    with source.block("if version >= 3:"):
        source.line("short()")
        source.line(f"call({'first, ' * 10}, read_second({'third, ' * 8}))")
    source.line("after()")
    assert source.lines[0] == "if version >= 3:"
    assert source.lines[1] == "    short()"
    assert source.lines[2] == "    call("
    assert source.lines[-1] == "after()"
    assert max(map(len, source.lines)) <= 99


def test_fields_are_read_where_their_version_has_them() -> None:
    source = Source()
    StructSource(source, FetchRequest, FetchTopic).reader()
    text = "\n".join(source.lines)
    assert "    if version <= 12:\n        put(m, FETCH_TOPIC_topic, read_string(r, False))" in text
    assert "    else:\n        put(m, FETCH_TOPIC_topic, '')" in text
    assert "count = read_count(r, False, 16)" in text


def test_tags_are_written_in_order_after_the_fields() -> None:
    source = Source()
    StructSource(source, FetchRequest, FetchPartition).writer()
    tags = [line.strip() for line in source.lines if "close_tag" in line]
    assert tags == ["close_tag(w, 0, start)", "close_tag(w, 1, start)"]

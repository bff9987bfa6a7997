"""Words of `barnabas sql` as DuckDB takes them, and places told in what was typed."""

from __future__ import annotations

import pytest

from barnabas.sql.dialect import quoted, to_duckdb


@pytest.mark.parametrize(
    ("typed", "translated"),
    [
        ("select 1", "select 1"),
        ("from `web.clicks`", 'from "web.clicks"'),
        ('from `a``b"c`', 'from "a`b""c"'),
        ("select '`x`', \"`y`\" -- `z`\nfrom `t`", 'select \'`x`\', "`y`" -- `z`\nfrom "t"'),
        ("/* `a` offset */ select 'it''s `b`'", "/* `a` offset */ select 'it''s `b`'"),
        ("select offset, max(Offset)", 'select "offset", max("Offset")'),
        ("where offset>5 order by offset desc", 'where "offset">5 order by "offset" desc'),
        ("limit 5 offset 10", "limit 5 offset 10"),
        ("limit 5 OFFSET (2)", "limit 5 OFFSET (2)"),
        ("select t.offset, offsets, my_offset", "select t.offset, offsets, my_offset"),
        ("select 'offset', \"offset\", `offset`", 'select \'offset\', "offset", "offset"'),
    ],
)
def test_quotes_and_the_word_offset(typed: str, translated: str) -> None:
    assert to_duckdb(typed).text == translated


def test_places_are_told_in_what_was_typed() -> None:
    typed = "select offset, offset from t where ?"
    found = to_duckdb(typed)
    assert found.original(found.text.index("?")) == typed.index("?")
    assert found.original(found.text.index("from")) == typed.index("from")
    assert found.original(3) == 3


def test_names_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'

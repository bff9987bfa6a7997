"""Messages of the engines as one line, with the place in the query as it was typed."""

from __future__ import annotations

import pytest

from barnabas.sql.dialect import to_duckdb
from barnabas.sql.local_engine import LocalEngine
from barnabas.sql.local_engine import explained as explained_by_duckdb
from barnabas.sql.spark_engine import explained as explained_by_spark


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("offset, ", ""), ("'" + "x" * 200 + "', ", ", '" + "y" * 200 + "'"), ("1,\n ", "")],
)
def test_duckdb_says_where_a_mistake_is(before: str, after: str) -> None:
    """Long lines are cut in its message, and the query is not quite what was typed."""
    duckdb = pytest.importorskip("duckdb")
    query = f"select {before}nothing{after} from (select 1 as offset)"
    translated = to_duckdb(query)
    with duckdb.connect(":memory:") as duck, pytest.raises(duckdb.Error) as failure:
        duck.execute(f"explain (format json) {translated.text}")
    told = str(explained_by_duckdb(str(failure.value), query, translated))
    place = query.index("nothing")
    line = query[:place].count("\n") + 1
    column = place - (query[:place].rfind("\n") + 1) + 1
    assert f"in line {line} at column {column}: nothing" in told
    assert "\n" not in told


def test_spark_says_where_a_mistake_is() -> None:
    query = "select\n nam from t"
    message = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nam` cannot be resolved. "
        "Did you mean one of the following? [`name`]. SQLSTATE: 42703; line 2 pos 1;\n"
        "'Project ['nam]\n+- SubqueryAlias t\n"
    )
    assert str(explained_by_spark(message, query)) == (
        "A column with name `nam` cannot be resolved. Did you mean one of the following? "
        "[`name`], in line 2 at column 2: nam from t"
    )
    parse = (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)\n"
        "\n== SQL ==\nselec 1\n^^^\n"
    )
    assert str(explained_by_spark(parse, "selec 1")) == (
        "Syntax error at or near 'selec', in line 1 at column 1: selec 1"
    )
    assert str(explained_by_spark("[X] It failed. SQLSTATE: 1", "")) == "It failed"


def test_without_duckdb_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from barnabas.sql.errors import SqlError

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SqlError, match=r"pip install 'barnabas\[sql\]'; --engine spark does"):
        LocalEngine({}, lambda: None)

"""What is shown, as lines of text that fit a terminal; colours are added by those who draw them.

Columns that do not fit are left out, the least important first, and rows that do not fit are
counted. Widths are those of a terminal's cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

from barnabas.cli.output import size_text
from barnabas.cli.top.controls import HELP, Controls, sorted_groups, sorted_topics
from barnabas.cli.top.reading import BrokerRow, GroupRow, Reading, TopicRow
from barnabas.cli.top.requests import RequestRow
from barnabas.logging.text import printable

GAP = "  "
NAME_WIDTH_MIN = 8
ROWS_MIN = 2
"""Of each table, before another one gets more."""
UNKNOWN = "-"


class Line(NamedTuple):
    """A line, and what it is: `title`, `head`, `bad`, `note` or nothing."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    cell: Callable[[Any], str]
    rank: int
    """The column with the highest rank is left out first; rank 0 never is."""
    right: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; the first column has the name, which may be cut."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    is_bad: Callable[[Any], bool] = lambda row: False


def lines_of(reading: Reading, controls: Controls, width: int, height: int | None) -> list[Line]:
    """Return the lines of a screen; without a height, of everything."""
    if controls.help:
        return [Line("keys of barnabas top", "title"), *map(Line, HELP)][:height]
    lines = _summary(reading, controls)
    lines += [Line(f"! {printable(text)}", "note") for text in reading.missing]
    tables = _tables(reading, controls)
    if height is None:
        rows = [len(table.rows) for table in tables]
    else:
        rows = share_rows(height - len(lines), [len(table.rows) for table in tables])
    for table, count in zip(tables, rows, strict=True):
        if count or (height is None and not table.rows):
            lines += _drawn(table, count, width)
    return [Line(_cut(text, width), kind) for text, kind in lines[:height]]


def share_rows(height: int, wanted: Sequence[int]) -> list[int]:
    """Share the height between tables: each takes two lines more than its rows.

    Tables at the end are left out if there is no room for a few rows of each.
    """
    rows = [0] * len(wanted)
    left = height
    for number, want in enumerate(wanted):
        least = min(want, ROWS_MIN)
        if least and left >= least + 2:
            rows[number] = least
            left -= least + 2
    grown = True
    while left > 0 and grown:
        grown = False
        for number, want in enumerate(wanted):
            if left > 0 and 0 < rows[number] < want:
                rows[number] += 1
                left -= 1
                grown = True
    return rows


def _summary(reading: Reading, controls: Controls) -> list[Line]:
    controller = UNKNOWN if reading.controller_id is None else str(reading.controller_id)
    every = "first sample" if reading.seconds is None else f"{reading.seconds:.1f} s"
    if controls.paused:
        every = "paused"
    bad = reading.under_replicated + reading.under_min_isr + reading.offline > 0
    growth = "*" if reading.bytes_are_growth else ""
    return [
        Line(
            f"{every}   sort {controls.order}   brokers {len(reading.brokers)}   "
            f"controller {controller}   topics {len(reading.topics)}   partitions "
            f"{reading.partitions}   groups {len(reading.groups)}   "
            f"cluster {reading.cluster_id or UNKNOWN}",
            "title",
        ),
        Line(
            f"in {_rate(reading.records_in)} records/s  {_bytes(reading.bytes_in)}/s{growth}   "
            f"out {_bytes(reading.bytes_out)}/s   "
            f"read by groups {_rate(reading.records_read)} records/s"
        ),
        Line(
            f"under-replicated {reading.under_replicated}   "
            f"under min ISR {reading.under_min_isr}   offline {reading.offline}",
            "bad" if bad or reading.controller_id is None else "",
        ),
    ]


def _tables(reading: Reading, controls: Controls) -> list[Table]:
    growth = "*" if reading.bytes_are_growth else ""
    tables = [
        Table(
            "groups",
            _GROUP,
            sorted_groups(reading.groups, controls.order),
        ),
        Table(
            "topics",
            _topic_columns(growth),
            sorted_topics(reading.topics, controls.order),
            lambda row: bool(row.under_replicated or row.offline),
        ),
        Table("brokers", _broker_columns(growth), reading.brokers, lambda row: row.not_in_sync > 0),
    ]
    if reading.requests is not None:
        tables.append(Table("requests", _REQUEST, reading.requests))
    return tables


def _drawn(table: Table, count: int, width: int) -> list[Line]:
    rows = table.rows[:count]
    head, *cells = fitted(table.columns, rows, width)
    more = len(table.rows) - count
    if more:
        head += f"{GAP}(+{more})"
    kinds = ["bad" if table.is_bad(row) else "" for row in rows]
    drawn = [Line(text, kind) for text, kind in zip(cells, kinds, strict=True)]
    if not table.rows:
        drawn = [Line("none")]
    return [Line(""), Line(head, "head"), *drawn]


def fitted(columns: Sequence[Column], rows: Sequence[Any], width: int) -> list[str]:
    """Return head and rows, without the columns that do not fit."""
    chosen = list(columns)
    while True:
        cells = [
            [column.title, *(printable(column.cell(row)) for row in rows)] for column in chosen
        ]
        widths = [max(map(cell_len, column)) for column in cells]
        over = sum(widths) + len(GAP) * (len(chosen) - 1) - width
        if over <= widths[0] - min(NAME_WIDTH_MIN, widths[0]):
            break
        last = max(chosen, key=lambda column: column.rank)
        if last.rank == 0:
            break
        chosen.remove(last)
    widths[0] -= max(over, 0)
    return [
        GAP.join(
            _padded(column[number], max(size, 1), right=place.right)
            for column, size, place in zip(cells, widths, chosen, strict=True)
        ).rstrip()
        for number in range(len(rows) + 1)
    ]


def _padded(text: str, size: int, *, right: bool) -> str:
    used = cell_len(text)
    if used > size:
        return _cut(text, size)
    return " " * (size - used) + text if right else text + " " * (size - used)


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)) + "…"


# cells


def _rate(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.1f}" if 0 < value < 10 else f"{value:,.0f}"


def _bytes(value: float | None) -> str:
    return UNKNOWN if value is None else size_text(int(value)) or UNKNOWN


def _ms(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g} ms"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 6_000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 360_000 else f"{seconds / 86_400:.0f} d"


def _group_lag_s(row: GroupRow) -> str:
    text = _span(row.lag_s)
    return f"≥ {text}" if row.lag_s_at_least else text


_GROUP = (
    Column("group", lambda row: row.name, 0, right=False),
    Column("state", lambda row: row.state or UNKNOWN, 5, right=False),
    Column("topics", lambda row: str(row.topics), 6),
    Column("lag", lambda row: f"{row.lag:,}", 0),
    Column("behind", _group_lag_s, 1),
    Column("in/s", lambda row: _rate(row.records_in), 4),
    Column("read/s", lambda row: _rate(row.records_read), 2),
    Column("drained in", lambda row: _span(row.drained_s), 3),
)


def _topic_columns(growth: str) -> tuple[Column, ...]:
    def state(row: TopicRow) -> str:
        if row.offline:
            return f"{row.offline} offline"
        return f"{row.under_replicated} under-replicated" if row.under_replicated else ""

    return (
        Column("topic", lambda row: row.name, 0, right=False),
        Column("partitions", lambda row: str(row.partitions), 4),
        Column("records/s", lambda row: _rate(row.records_in), 0),
        Column(f"in/s{growth}", lambda row: _bytes(row.bytes_in), 1),
        Column("out/s", lambda row: _bytes(row.bytes_out), 3),
        Column("", state, 2, right=False),
    )


def _broker_columns(growth: str) -> tuple[Column, ...]:
    def name(row: BrokerRow) -> str:
        return f"{row.broker_id} controller" if row.is_controller else str(row.broker_id)

    def busy(row: BrokerRow) -> str:
        return UNKNOWN if row.busy is None else f"{row.busy * 100:.0f}%"

    return (
        Column("broker", name, 0, right=False),
        Column("address", lambda row: row.address, 8, right=False),
        Column("rack", lambda row: row.rack or UNKNOWN, 11, right=False),
        Column("leads", lambda row: str(row.leads), 5),
        Column("replicas", lambda row: str(row.replicas), 6),
        Column("not in sync", lambda row: str(row.not_in_sync), 3),
        Column("records/s", lambda row: _rate(row.records_in), 0),
        Column(f"in/s{growth}", lambda row: _bytes(row.bytes_in), 2),
        Column("out/s", lambda row: _bytes(row.bytes_out), 4),
        Column("busy", busy, 4),
        Column("clients", lambda row: _whole(row.connections), 7),
        Column("memory", lambda row: _bytes(row.memory_bytes), 9),
        Column("answers in", lambda row: _ms(row.round_trip_ms), 1),
    )


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _request_p99(row: RequestRow) -> str:
    return UNKNOWN if row.p99_ms is None else f"≤ {_ms(row.p99_ms)}"


_REQUEST = (
    Column("request", lambda row: row.api, 0, right=False),
    Column("per s", lambda row: _rate(row.per_s), 1),
    Column("mean", lambda row: _ms(row.mean_ms), 2),
    Column("p99", _request_p99, 0),
    Column("mostly", lambda row: row.slowest_phase or "", 3, right=False),
)

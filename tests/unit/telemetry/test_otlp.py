"""OTLP metrics are read as they were written; whatever else arrives is rejected, quickly."""

from __future__ import annotations

from math import inf, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.otlp import (
    CUMULATIVE,
    EXPONENTIAL,
    GAUGE,
    HISTOGRAM,
    SUM,
    SUMMARY,
    distribution,
    eight,
    metric,
    metrics_data,
    number,
    sized,
    varint,
    whole,
)

from barnabas.telemetry import otlp
from barnabas.telemetry.otlp import MalformedTelemetryError, Point, PointKind, read_points


def test_gauges_and_sums() -> None:
    data = metrics_data(
        metric("a.b", GAUGE, number(2.5, {"z": "1", "node": 7}), unit="ms"),
        metric("c", SUM, number(3), number(-4, {"on": True, "x": -2, "f": 0.5})),
        metric("d", SUM, number(9), temporality=CUMULATIVE),
    )
    assert read_points(data) == [
        Point("a.b", "ms", PointKind.GAUGE, (("node", "7"), ("z", "1")), 2.5),
        Point("c", "1", PointKind.DELTA, (), 3.0),
        Point("c", "1", PointKind.DELTA, (("f", "0.5"), ("on", "true"), ("x", "-2")), -4.0),
        Point("d", "1", PointKind.SUM, (), 9.0),
    ]


@pytest.mark.parametrize("kind", [HISTOGRAM, EXPONENTIAL, SUMMARY])
def test_distributions_give_a_count_and_a_sum(kind: int) -> None:
    data = metrics_data(metric("t", kind, distribution(kind, 4, 10.0, {"k": "v"}), unit="ms"))
    expected = PointKind.SUM if kind == SUMMARY else PointKind.DELTA
    assert read_points(data) == [
        Point("t.count", "", expected, (("k", "v"),), 4.0),
        Point("t.sum", "ms", expected, (("k", "v"),), 10.0),
    ]


def test_nothing_is_no_points() -> None:
    assert read_points(b"") == []
    assert read_points(metrics_data()) == []
    assert read_points(metrics_data(metric("empty", GAUGE))) == []


def test_what_is_no_number_is_left_out() -> None:
    points = [number(nan), number(inf), number(1.0), b""]
    assert [each.value for each in read_points(metrics_data(metric("a", GAUGE, *points)))] == [1.0]


def test_unknown_fields_of_every_type_are_skipped() -> None:
    extra = (
        whole(99, 1 << 63) + eight(98, bytes(8)) + sized(97, "x") + varint(96 << 3 | 5) + bytes(4)
    )
    data = extra + metrics_data(extra + metric("a", GAUGE, number(1.0) + extra) + extra) + extra
    assert [each.name for each in read_points(data)] == ["a"]


def test_texts_are_cut_and_printable() -> None:
    name = "n\x00\n\u202e" + "x" * 1000
    data = metrics_data(
        metric(
            name, GAUGE, number(1.0, {"k" * 1000: "\x1b[31m", **{f"a{i}": i for i in range(40)}})
        )
    )
    (point,) = read_points(data)
    assert point.name.isprintable()
    assert len(point.name) == otlp.TEXT_MAX
    assert len(point.attributes) == otlp.ATTRIBUTES_MAX
    assert all(key.isprintable() and value.isprintable() for key, value in point.attributes)
    broken = sized(1, b"\xff\xfe") + sized(GAUGE, sized(1, number(1.0)))
    assert read_points(metrics_data(broken))[0].name == "\N{REPLACEMENT CHARACTER}" * 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (varint(1 << 3 | 2) + varint(5) + b"abc", "truncated"),
        (varint(1 << 3 | 1) + bytes(7), "truncated"),
        (varint(1 << 3 | 5) + bytes(3), "truncated"),
        (b"\xff" * 11, "too long"),
        (b"\x80", "truncated"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "number 0"),
        (whole(1, 7), "instead of bytes"),
        (metrics_data(sized(1, "m") + sized(SUM, sized(2, "x"))), "instead of a number"),
        (metrics_data(sized(1, "m") + sized(GAUGE, sized(1, whole(4, 1)))), "8 bytes"),
    ],
)
def test_what_is_not_otlp_is_rejected(data: bytes, why: str) -> None:
    with pytest.raises(MalformedTelemetryError, match=why):
        read_points(data)


def test_the_number_of_fields_and_of_points_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "FIELDS_MAX", 100)
    with pytest.raises(MalformedTelemetryError, match="more than 100 fields"):
        read_points(whole(9, 0) * 101)
    assert read_points(whole(9, 0) * 100) == []
    monkeypatch.setattr(otlp, "FIELDS_MAX", 10_000)
    monkeypatch.setattr(otlp, "POINTS_MAX", 3)
    points = [number(float(value)) for value in range(4)]
    assert len(read_points(metrics_data(metric("a", GAUGE, *points[:3])))) == 3
    with pytest.raises(MalformedTelemetryError, match="more than 3 numbers"):
        read_points(metrics_data(metric("a", GAUGE, *points)))


@given(st.binary(max_size=300))
def test_random_bytes_are_read_or_rejected(data: bytes) -> None:
    _read_or_reject(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_metrics_are_read_or_rejected(seed: int) -> None:
    """Bytes that were metrics once reach deeper than random ones."""
    random = Random(seed)
    whole_push = metrics_data(
        metric("a.b", GAUGE, number(2.5, {"z": "1", "node": 7})),
        metric("c", SUM, number(3, {"on": True})),
        *(metric("t", kind, distribution(kind, 4, 10.0)) for kind in (HISTOGRAM, SUMMARY)),
    )
    outcomes = set()
    for _ in range(2000):
        damaged = bytearray(whole_push)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        cut = random.randrange(len(damaged)) if random.random() < 0.2 else len(damaged)
        outcomes.add(_read_or_reject(bytes(damaged[:cut])))
    assert outcomes == {True, False}, "both must occur, or the inputs prove nothing"


def _read_or_reject(data: bytes) -> bool:
    try:
        points = read_points(data)
    except MalformedTelemetryError:
        return False
    for point in points:
        assert point.name.isprintable()
        assert abs(point.value) < inf
    return True

"""Heads of requests: what is understood, and one clear answer to everything else."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.monitoring.http_request import (
    HEAD_BYTES_MAX,
    BadRequest,
    HttpRequest,
    head_end,
    parse_head,
    weight,
)

OPENMETRICS, TEXT = "application/openmetrics-text", "text/plain"
OF_PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


def parsed(*lines: str) -> HttpRequest:
    return parse_head("\r\n".join([*lines, "", ""]).encode("latin-1"))


def test_a_request_of_prometheus() -> None:
    request = parsed(
        "GET /metrics?collect[]=topics&collect%5B%5D=groups&names=jmx HTTP/1.1",
        "Host: 127.0.0.1:9404",
        "User-Agent: Prometheus/2.42.0",
        f"Accept: {OF_PROMETHEUS}",
        "Accept-Encoding: gzip",
        "X-Prometheus-Scrape-Timeout-Seconds: 10",
    )
    assert (request.method, request.path) == ("GET", "/metrics")
    assert request.values("collect[]", ["topics", "groups"]) == {"topics", "groups"}
    assert request.prefers(OPENMETRICS, TEXT)
    assert request.accepts_gzip
    assert request.keeps_alive
    assert not request.is_head


@pytest.mark.parametrize(
    ("line", "fields", "keeps_alive"),
    [
        ("GET / HTTP/1.1", ["Host: a"], True),
        ("GET / HTTP/1.1", ["Host: a", "Connection: Close"], False),
        ("GET / HTTP/1.0", [], False),
        ("HEAD / HTTP/1.0", ["Connection: keep-alive"], True),
    ],
)
def test_who_may_send_another_request(line: str, fields: list[str], keeps_alive: bool) -> None:
    request = parsed(line, *fields)
    assert request.keeps_alive is keeps_alive
    assert request.chunked is line.endswith("1.1")


@pytest.mark.parametrize(
    ("lines", "status", "why"),
    [
        (["POST / HTTP/1.1", "Host: a"], HTTPStatus.METHOD_NOT_ALLOWED, "GET or HEAD"),
        (["GET / HTTP/2.0"], HTTPStatus.BAD_REQUEST, "HTTP/1.1"),
        (["\x16\x03\x01"], HTTPStatus.BAD_REQUEST, "HTTP/1.1"),
        (["GET  / HTTP/1.1"], HTTPStatus.BAD_REQUEST, "HTTP/1.1"),
        (["GET http://other/ HTTP/1.1", "Host: a"], HTTPStatus.BAD_REQUEST, "path"),
        (["GET / HTTP/1.1"], HTTPStatus.BAD_REQUEST, "Host is missing"),
        (["GET / HTTP/1.1", "Host: a", "Host: b"], HTTPStatus.BAD_REQUEST, "twice"),
        (["GET / HTTP/1.1", "Host : a"], HTTPStatus.BAD_REQUEST, "malformed"),
        (["GET / HTTP/1.1", "Host: a", " folded"], HTTPStatus.BAD_REQUEST, "malformed"),
        (["GET / HTTP/1.1", "Host: a", "X: b\x00c"], HTTPStatus.BAD_REQUEST, "malformed"),
        (["GET / HTTP/1.1", "Host: a", "Content-Length: 3"], HTTPStatus.BAD_REQUEST, "no body"),
        (
            ["GET / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"],
            HTTPStatus.BAD_REQUEST,
            "no body",
        ),
    ],
)
def test_what_is_not_understood(lines: list[str], status: HTTPStatus, why: str) -> None:
    with pytest.raises(BadRequest, match=why) as refusal:
        parsed(*lines)
    assert refusal.value.status is status


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_bad_one(head: bytes) -> None:
    try:
        request = parse_head(head)
    except BadRequest as refusal:
        status = refusal.status.value
    else:
        assert request.path.startswith("/")
        status = 400
    assert 400 <= status < 500


def test_a_head_ends_with_an_empty_line() -> None:
    head = b"GET / HTTP/1.0\r\n\r\n"
    assert head_end(head + b"more") == len(head)
    assert head_end(head[:-1]) == -1
    assert head_end(b"x" * (HEAD_BYTES_MAX - 1)) == -1
    with pytest.raises(BadRequest, match="at most 8192 bytes") as refusal:
        head_end(b"x" * HEAD_BYTES_MAX)
    assert refusal.value.status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_a_parameter_has_one_of_the_known_values() -> None:
    request = parsed("GET /?names=kafka&names=jmx HTTP/1.0")
    with pytest.raises(BadRequest, match="names=kafka: must be jmx, reporter"):
        request.values("names", ["jmx", "reporter"])
    assert request.values("collect[]", ["topics"]) == frozenset()


@pytest.mark.parametrize(
    ("accepted", "prefers"),
    [
        (OF_PROMETHEUS, True),
        ("*/*", False),
        ("", False),
        ("text/plain", False),
        ("application/openmetrics-text;q=0.5,text/plain;q=0.6", False),
        ("application/*;q=0.9,text/plain;q=0.8", True),
        ("application/openmetrics-text;q=0", False),
    ],
)
def test_openmetrics_is_sent_to_those_that_prefer_it(accepted: str, prefers: bool) -> None:
    request = parsed("GET / HTTP/1.0", f"Accept: {accepted}")
    assert request.prefers(OPENMETRICS, TEXT) is prefers


def test_the_most_specific_weight_counts() -> None:
    assert weight("text/*;q=0.3, text/plain;q=0.7, */*;q=0.5", TEXT) == 0.7
    assert weight("text/*;q=0.3, */*;q=0.5", TEXT) == 0.3
    assert weight("image/png", TEXT) == 0


@pytest.mark.parametrize(
    ("codings", "accepts"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("br", False)],
)
def test_who_accepts_gzip(codings: str, accepts: bool) -> None:
    assert parsed("GET / HTTP/1.0", f"Accept-Encoding: {codings}").accepts_gzip is accepts

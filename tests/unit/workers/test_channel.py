"""Orders and reports, as lines; whoever has no supervisor learns what to do."""

from __future__ import annotations

import os
import socket

import pytest

from barnabas.model.errors import ConfigError
from barnabas.workers.channel import (
    InSync,
    Orders,
    Ready,
    Report,
    decode_orders,
    decode_report,
    encode_orders,
    encode_report,
    inherited,
)


def test_orders_arrive_as_they_were() -> None:
    orders = Orders(2, {"log.dirs": "/a b\n", "password": "ü"}, "/tree.sock")
    line = encode_orders(orders)
    assert line.count(b"\n") == 1
    assert decode_orders(line) == orders


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}"])
def test_a_worker_without_orders_says_why(line: bytes) -> None:
    with pytest.raises(ConfigError, match="ended before it sent"):
        decode_orders(line)


@pytest.mark.parametrize(
    "report", [Ready(["PLAINTEXT://h:1"], {"PLAINTEXT": 1}, 2, None), InSync()]
)
def test_reports_arrive_as_they_were(report: Report) -> None:
    assert decode_report(encode_report(report)) == report


def test_noise_is_no_report() -> None:
    for line in (b"{}\n", b'{"Gone":{}}\n', b"noise"):
        with pytest.raises(ValueError, match=r"no report|Expecting value"):
            decode_report(line)


def test_only_a_supervisor_starts_workers() -> None:
    reading, writing = os.pipe()
    with pytest.raises(ConfigError, match=r"--worker \d+: only a supervisor starts workers"):
        inherited(reading)
    os.close(reading)
    os.close(writing)
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    with ours, inherited(theirs.detach()) as taken:
        assert not taken.get_inheritable()

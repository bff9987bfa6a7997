"""Where metrics are, as given and as the options of brokers say."""

from __future__ import annotations

import argparse

import pytest

from barnabas.cli.top.endpoints import (
    Endpoint,
    endpoint_url,
    fetch_page,
    given_endpoints,
    parse_endpoint,
)
from barnabas.cli.top.page import LOOP_BUSY
from barnabas.testing import Cluster


def test_an_endpoint_may_name_its_broker() -> None:
    given = ["1=http://a:9404/metrics", "https://b/metrics?x=1=2", "http://c/metrics"]
    assert given_endpoints(map(parse_endpoint, given)) == [
        Endpoint(1, "http://a:9404/metrics"),
        Endpoint(-2, "https://b/metrics?x=1=2"),
        Endpoint(-3, "http://c/metrics"),
    ]
    for wrong in ("a:9404", "x=http://a", "1=ftp://a", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="URL or BROKER=URL"):
            parse_endpoint(wrong)


@pytest.mark.parametrize(
    ("listener", "broker", "url"),
    [
        ("0.0.0.0:9404", "kafka1", "http://kafka1:9404/metrics"),
        (":9404", "kafka1", "http://kafka1:9404/metrics"),
        ("[::]:9404", "fd00::1", "http://[fd00::1]:9404/metrics"),
        ("10.0.0.7:9404", "kafka1", "http://10.0.0.7:9404/metrics"),
        ("127.0.0.1:9404", "localhost", "http://127.0.0.1:9404/metrics"),
        ("127.0.0.1:9404", "kafka1", None),
        ("127.0.0.1:0", "localhost", None),
        ("", "kafka1", None),
    ],
)
def test_a_listener_as_it_is_reached_from_here(listener: str, broker: str, url: str | None) -> None:
    assert endpoint_url(listener, broker, tls=False) == url


def test_a_page_of_a_broker() -> None:
    with Cluster(metrics=True) as cluster:
        page = fetch_page(cluster.metrics_url(), 10.0)
        assert page.total(LOOP_BUSY) is not None
        with pytest.raises(OSError, match="404"):
            fetch_page(cluster.metrics_url().replace("/metrics", "/none"), 10.0)

"""Pages of metrics, as Barnabas and as Kafka's exporters write them."""

from __future__ import annotations

from barnabas.cli.top.page import BYTES_IN, CONNECTIONS, LOOP_BUSY, REQUESTS, read_page

PAGE = """\
# HELP kafka_server_brokertopicmetrics_bytesin_total Bytes.
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 300
kafka_server_brokertopicmetrics_bytesin_total{topic="a\\"b\\\\c",} 100.0
kafka_server_brokertopicmetrics_bytesin_total{topic="d"} 2e2
kafka_network_requestmetrics_requests_total{request="Produce",version="9"} 7 1700000000000
kafka_server_socket_server_metrics_connection_count{listener="A",networkProcessor="0"} 3
kafka_server_socket_server_metrics_connection_count{listener="B",networkProcessor="0"} 4
barnabas_loop_busy_ratio NaN?
something_else{topic="d"} 1
"""


def test_series_are_read_by_name_and_labels() -> None:
    page = read_page(PAGE)
    assert page.of(BYTES_IN) == {
        (): 300.0,
        (("topic", 'a"b\\c'),): 100.0,
        (("topic", "d"),): 200.0,
    }
    assert page.of(REQUESTS) == {(("request", "Produce"), ("version", "9")): 7.0}
    assert list(page.series) == [BYTES_IN, REQUESTS, CONNECTIONS], "the others are not shown"


def test_a_total_is_the_series_without_labels_or_the_sum() -> None:
    page = read_page(PAGE)
    assert page.total(BYTES_IN) == 300
    assert page.total(CONNECTIONS) == 7
    assert page.total(LOOP_BUSY) is None

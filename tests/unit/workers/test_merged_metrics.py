"""Several workers' metrics in one text, which Prometheus' own parser reads."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from barnabas.workers.merged_metrics import merged

FIRST = b"""# HELP up Whether it is up.
# TYPE up gauge
up 1
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{api="Fetch",text="a } b, {"} 5 1700000000
requests_total{} 7
"""
SECOND = b"""# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{api="Fetch",text="a } b, {"} 6
# HELP only_here Something.
# TYPE only_here gauge
only_here 3
"""


def test_series_of_a_metric_stay_together_and_say_whose_they_are() -> None:
    text = merged([(1, FIRST), (2, SECOND)]).decode()
    found = {each.name: each for each in families(text)}
    assert set(found) == {"up", "requests", "only_here"}
    labels = [(each.labels, each.value) for each in found["requests"].samples]
    assert labels == [
        ({"worker": "1", "api": "Fetch", "text": "a } b, {"}, 5),
        ({"worker": "1"}, 7),
        ({"worker": "2", "api": "Fetch", "text": "a } b, {"}, 6),
    ]
    assert [each.labels for each in found["only_here"].samples] == [{"worker": "2"}]
    assert text.count("# TYPE requests_total") == 1


def test_openmetrics_ends_once_and_keeps_exemplars() -> None:
    one = (
        b"# TYPE wait histogram\n"
        b'wait_bucket{le="1.0"} 2 # {trace_id="x"} 0.5\n'
        b'wait_bucket{le="+Inf"} 2\nwait_count 2\nwait_sum 1.5\n'
        b"# TYPE up gauge\nup 1\n# EOF\n"
    )
    text = merged([(1, one), (2, one)]).decode()
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    found = {each.name: each for each in open_families(text)}
    assert len(found["wait"].samples) == 8
    assert found["wait"].samples[0].exemplar.labels == {"trace_id": "x"}
    plain = b'# TYPE a counter\na_total 1 # {trace_id="y"} 2\n'
    assert b'a_total{worker="3"} 1 # {trace_id="y"} 2\n' in merged([(3, plain)])
    assert merged([]) == b""

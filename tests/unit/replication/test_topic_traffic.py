"""The numbers of a topic."""

from __future__ import annotations

from barnabas.replication.topic_traffic import FIELDS, PRODUCE_FIELDS, TopicTraffic


def test_numbers_move_and_begin_again() -> None:
    traffic, gone = TopicTraffic(), TopicTraffic()
    traffic.bytes_in, traffic.bytes_out, gone.bytes_in = 5, 7, 10
    traffic.move(PRODUCE_FIELDS, gone)
    assert (traffic.bytes_in, traffic.bytes_out) == (0, 7)
    assert (gone.bytes_in, gone.bytes_out) == (15, 0)
    traffic.move(FIELDS, gone)
    assert [getattr(traffic, field) for field in FIELDS] == [0] * len(FIELDS)
    assert gone.bytes_out == 7

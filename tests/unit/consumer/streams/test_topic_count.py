"""Subscriptions: by name, by white list, by black list, and as other members registered them."""

from __future__ import annotations

import pytest

from barnabas.consumer.streams import nodes
from barnabas.consumer.streams.topic_count import (
    StaticTopics,
    TopicFilter,
    registered,
    thread_ids,
)
from barnabas.model.errors import CorruptFileError, InvalidValueError

TOPICS = ["orders", "orders.eu", "users", "__consumer_offsets"]


def test_topics_by_name_are_wanted_whether_they_exist_or_not() -> None:
    """A static subscription does not look at what there is."""
    wanted = StaticTopics({"orders": 2, "later": 1})
    assert wanted.streams(TOPICS) == {"orders": 2, "later": 1}
    assert (wanted.pattern, wanted.encoded()) == ("static", {"orders": 2, "later": 1})
    assert thread_ids("g_host-1-ab", 2) == ["g_host-1-ab-0", "g_host-1-ab-1"]


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [
        (TopicFilter("orders.*", 3), ["orders", "orders.eu"]),
        (TopicFilter("orders", 3), ["orders"]),
        (TopicFilter('"orders, users"', 3), ["orders", "users"]),
        (TopicFilter("orders.*", 3, blacklist=True), ["users"]),
        (TopicFilter(".*", 3), ["orders", "orders.eu", "users"]),
        (TopicFilter(".*", 3, exclude_internal=False), TOPICS),
        (TopicFilter("users", 3, True, False), ["orders", "orders.eu", "__consumer_offsets"]),
    ],
)
def test_patterns(wanted: TopicFilter, matching: list[str]) -> None:
    """Whole names are matched, commas are alternatives, internal topics are left out."""
    assert wanted.streams(TOPICS) == dict.fromkeys(matching, 3)


def test_what_is_registered_is_read_back() -> None:
    """The registration tells other members the same subscription."""
    for wanted in (StaticTopics({"a": 2}), TopicFilter("a,b", 1), TopicFilter("a", 1, True)):
        data = nodes.encode_subscription(wanted.encoded(), wanted.pattern, 1700)
        again = registered("/id", *nodes.decode_subscription("/id", data), exclude_internal=True)
        assert again.streams(["a", "b", "c"]) == wanted.streams(["a", "b", "c"])
    assert nodes.encode_subscription({"t": 2}, "static", 1700) == (
        b'{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1700"}'
    )


def test_bad_subscriptions_are_refused() -> None:
    """No streams, or no regular expression."""
    with pytest.raises(InvalidValueError, match="0 streams for topic 't'"):
        StaticTopics({"t": 0})
    with pytest.raises(InvalidValueError, match="0 streams"):
        TopicFilter("t", 0)
    with pytest.raises(InvalidValueError, match="regular expression"):
        TopicFilter("(", 1)


def test_nodes_of_others_are_read_with_care() -> None:
    """Partitions and addresses of any version; what makes no sense names the node."""
    assert nodes.decode_partitions("/t", b'{"version":1,"partitions":{"10":[1],"9":[2]}}') == [
        9,
        10,
    ]
    tls_first = b'{"endpoints":["SSL://h:1","IN://[::1]:2"],"listener_security_protocol_map":{"SSL":"SSL","IN":"PLAINTEXT"}}'
    assert nodes.decode_address("/b", tls_first) == ("::1", 2)
    assert nodes.decode_address("/b", b'{"host":"old","port":9092}') == ("old", 9092)
    assert nodes.decode_address("/b", b'{"host":null,"port":-1,"endpoints":["SSL://h:1"]}') is None
    for read in (nodes.decode_partitions, nodes.decode_subscription, nodes.decode_address):
        for data in (b"", b"[]"):
            with pytest.raises(CorruptFileError, match="node /x"):
                read("/x", data)
    with pytest.raises(CorruptFileError, match="node /x is not a consumer"):
        nodes.decode_subscription("/x", b"{}")
    with pytest.raises(CorruptFileError, match="node /x is not a broker"):
        nodes.decode_address("/x", b'{"host":"h","port":"many"}')
    assert nodes.decode_offset("/x", b"17") == 17
    with pytest.raises(CorruptFileError, match="node /x is not an offset: b'many'"):
        nodes.decode_offset("/x", b"many")
    with pytest.raises(
        CorruptFileError, match="node /x: a white_list must have one pattern, not 2"
    ):
        registered("/x", {"a": 1, "b": 1}, "white_list", exclude_internal=True)

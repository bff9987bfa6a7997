"""What the cluster holds: thousands of topics, and whatever strangers may send to a broker.

Written by librdkafka, save for names with a null byte, which only our own client can send.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.console.chromium import CANARY as CANARY

from barnabas.admin.group_offsets import commit_offsets
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.ids import TopicPartition as Partition
from barnabas.model.query_progress import QueryProgress

TOPICS, PARTITIONS = 2000, 5
ORDERS, HOSTILE, HISTORY, JOURNAL = "orders", "hostile", "history", "journal"
BILLING, PIPELINE, TRANSACTION = "billing", "daily-totals", "checkout-7"
COMMITTED = "stock-3"
"""A transactional id whose transaction is committed from the start."""
LOT = 500
DEADLINE_S = 120.0

SCRIPT = f"<script>console.error('{CANARY}')</script>"
NAMES = {
    "script": SCRIPT,
    "image": f"<img src=x onerror=\"console.error('{CANARY}')\">",
    "attribute": f"\"' autofocus onfocus=console.error('{CANARY}') x=\"",
    "htmx": '<div hx-get="/logout" hx-trigger="load" hx-swap="outerHTML">x</div>',
    "template": "{{ 7*7 }}{% raw %}${7*7}",
    "link": f"javascript:console.error('{CANARY}')//",
    "right to left": "gro\u202egnp.exe\u2066",
    "control": "a\x01b\x1b[31mc\x7fd\u0085e",
    "path": "../../etc/passwd?x=1#y",
    "lines": "one\r\ntwo\u2028three",
    "astral": "\U0001f4a9\U000e0041",
}
"""Names that a client can give to groups, to itself, to users and to transactions."""
NULL = "nu\0ll"
PAYLOADS: dict[str, bytes] = {
    **{name: text.encode() for name, text in NAMES.items()},
    "null bytes": b"a\0b\0\0c",
    "not UTF-8": b"\xff\xfe\xc3(" + SCRIPT.encode() + b"\xed\xa0\x80",
    "every byte": bytes(range(256)),
    "one MB": (SCRIPT * (1_000_000 // len(SCRIPT))).encode(),
    "deep JSON": b"[" * 20_000 + b"]" * 20_000,
    "script in JSON": json.dumps({SCRIPT: [SCRIPT, {"a": SCRIPT}]}).encode(),
}


def fill(options: Mapping[str, Any], records: int) -> None:
    """Create the topics, groups, clients and users; `records` are for the long topic."""
    admin = AdminClient({**options})
    create_topics(admin)
    write_records(options, records)
    commit_all(admin, options)


def create_topics(admin: AdminClient) -> None:
    """Create two thousand topics with ten thousand partitions, and a few to work with."""
    own = [
        NewTopic(ORDERS, 6, 3, config={"retention.ms": "86400000"}),
        NewTopic(HOSTILE, 1, 3),
        NewTopic(HISTORY, 1, 1, config={"segment.bytes": "8388608"}),
        NewTopic(JOURNAL, 3, 2, config={"cleanup.policy": "compact"}),
    ]
    many = [
        NewTopic(f"team-{number % 40:02}.stream-{number:04}", PARTITIONS, 1)
        for number in range(TOPICS)
    ]
    for lot in (own, *(many[at : at + LOT] for at in range(0, TOPICS, LOT))):
        made = admin.create_topics(lot, operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S)
        for future in made.values():
            future.result(DEADLINE_S)


def write_records(options: Mapping[str, Any], records: int) -> None:
    """Write orders, everything hostile, and a long topic with one word at its very beginning."""
    # The console looks for a key where Java's clients send it.
    shop = {**options, "client.id": "shop", "partitioner": "murmur2_random", "linger.ms": 50}
    produce(shop, ORDERS, (order(number) for number in range(300)))
    for name in NAMES.values():  # clients whose names are hostile
        produce({**options, "client.id": name}, JOURNAL, [(name.encode(), b"{}", [])])
    in_transactions = Producer({**options, "transactional.id": COMMITTED})
    in_transactions.init_transactions(DEADLINE_S)
    in_transactions.begin_transaction()
    in_transactions.produce(JOURNAL, b"{}", b"committed")
    in_transactions.commit_transaction(DEADLINE_S)
    rows = [
        (payload, payload, [(name, payload), (SCRIPT, payload[:200])])
        if len(payload) < 100_000
        else (b"large", payload, [])
        for name, payload in PAYLOADS.items()
    ]
    produce({**options, "compression.type": "gzip"}, HOSTILE, rows)
    produce(
        {**options, "compression.type": "lz4", "linger.ms": 100},
        HISTORY,
        (
            (None, b'{"event":"%s","n":%d}' % (b"oldest" if not n else b"tick", n), [])
            for n in range(records)
        ),
    )


def order(number: int) -> tuple[bytes, bytes, list[tuple[str, bytes]]]:
    """Return an order as a shop would write it."""
    value = {
        "id": 10_000 + number,
        "customer": f"c-{number * 7919 % 97:03}",
        "status": ("created", "paid", "shipped")[number % 3],
        "total": round(number * 7.35 % 250 + 4, 2),
    }
    key = str(value["customer"]).encode()
    return key, json.dumps(value).encode(), [("source", b"web"), ("trace", b"%016x" % number)]


Written = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]


def produce(options: Mapping[str, Any], topic: str, rows: Iterable[Written]) -> None:
    """Write records, and fail for any that the broker does not take."""
    limits = {"queue.buffering.max.messages": 1_000_000, "message.max.bytes": 2_000_000}
    producer = Producer({**limits, **options})
    failures = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for key, value, headers in rows:
        producer.produce(topic, value, key, headers=list(headers), on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    assert not failures, failures


def commit_all(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Commit offsets of groups with all names, and those of a query of Spark."""
    commit(admin, BILLING, ORDERS, range(6), 10)
    for name in NAMES.values():
        commit(admin, name, ORDERS, [0], 0)
    now_ms = time.time_ns() // 1_000_000
    progress = QueryProgress(42, now_ms, now_ms - 600_000)
    commit(admin, PIPELINE, ORDERS, [0, 1], 20, progress.text())
    asyncio.run(_commit_null(options))


def commit(
    admin: AdminClient,
    group: str,
    topic: str,
    partitions: Iterable[int],
    offset: int,
    metadata: str = "",
) -> None:
    """Commit an offset of a group without members in some partitions."""
    offsets = [TopicPartition(topic, each, offset, metadata=metadata) for each in partitions]
    request = ConsumerGroupTopicPartitions(group, offsets)
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answered = admin.alter_consumer_group_offsets([request])[group].result(DEADLINE_S)
        failed = [each.error for each in answered.topic_partitions if each.error is not None]
        if not failed:
            return
        # The first commit of a cluster creates the topic that it goes to.
        assert time.monotonic() < deadline, failed


async def _commit_null(options: Mapping[str, Any]) -> None:
    given = {name: value for name, value in options.items() if name != "log_level"}
    kafka = {"client.id": NULL, **given}
    async with ClusterClient.from_options(parse_client_options(AdminOptions, kafka)) as client:
        outcomes = await commit_offsets(client, NULL, {Partition(ORDERS, 0): 0})
        assert list(outcomes.values()) == [None]

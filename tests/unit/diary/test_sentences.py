"""Entries in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.diary.catalogue import EVENTS, REBALANCE_CAUSES
from barnabas.diary.sentences import sentence
from barnabas.diary.wording import moment, size, span

WHO = {"principal": "User:alice", "client_id": "app", "host": "10.0.0.7"}
MEMBER = {
    "generation": 6,
    "member": "m1",
    "host": "10.0.0.7",
    "silent_ms": 10_012,
    "timeout_ms": 10_000,
    "missing": ["m2"],
    "step": "join",
    "topics_before": ["a"],
    "topics_after": ["a", "b"],
    "protocols_before": ["range"],
    "protocols_after": ["sticky"],
    "changes": {"orders": [3, 6]},
    "instance": "i",
    "to": "consumer",
    "size": 5,
    "limit": 2,
    "said": "",
}
ROUND = {
    "generation": 7,
    "before": 3,
    "after": 2,
    "took_ms": 3_200,
    "joining_ms": 3_100,
    "assigning_ms": 100,
    "joined": [],
    "left": ["m1"],
    "timed_out": [],
}
ISR = {
    "from": [1, 2, 3],
    "to": [1, 2],
    "removed": [3],
    "code": "INELIGIBLE_REPLICA",
    "leader_epoch": 7,
    "version": 48,
    "replicas": [{"id": 3, "behind": 481, "caught_up_ms_ago": 30_412}],
    "lag_ms_max": 30_000,
}
LEADER = {
    "leader": 1,
    "previous": 3,
    "leader_epoch": 7,
    "isr": [1, 2],
    "isr_before": [3],
    "replicas": [1, 2, 3],
    "dead": [3],
    "failed": [],
}
QUOTA = {
    "entity": "user alice",
    "rate": 2_000_000.0,
    "limit": 1_000_000.0,
    "delay_ms": 1_200,
    "took_ms": 9_000,
    "throttles": 4,
    "longest_ms": 2_000,
}
LOG = {
    "broker": 2,
    "from": 100,
    "to": 90,
    "leader": 1,
    "leader_epoch": 7,
    "logs": 5,
    "segments": 2,
    "bytes": 2_048,
    "offset": 17,
    "retention_ms": 3_600_000,
    "retention_bytes": 10_240,
    "reason": "a reason",
    "directory": "/disk1",
    "partition": "orders-3",
    "took_ms": 1_500,
}
CHANGE = {
    **WHO,
    "resource": "topic orders",
    "change": "acl added",
    "changes": "set retention.ms=1",
    "acl": "User:alice has ALLOW permission for READ from host * on Topic:LITERAL:orders",
    "replication_factor": 3,
    "partitions": 6,
    "offsets": 2,
}
DATA: dict[str, dict[str, Any]] = {
    "group.rebalance": MEMBER,
    "group.stable": ROUND,
    "group.empty": ROUND,
    "group.deleted": CHANGE,
    "offsets.expired": {"offsets": 2, "retention_ms": 604_800_000},
    "offsets.reset": {**WHO, "moves": {"orders-0": [20, 3]}, "partitions": 2},
    "isr.shrink": ISR,
    "isr.expand": {"from": [1, 2], "to": [1, 2, 3]},
    "isr.refused": ISR,
    "leader.elected": LEADER,
    "partition.offline": LEADER,
    "log.truncated": LOG,
    "throttle.begin": QUOTA,
    "throttle.end": QUOTA,
    "reject.produce": {
        **WHO,
        "partition": "orders-3",
        "code": "MESSAGE_TOO_LARGE",
        "reason": "a reason",
        "limit": 5,
        "isr": 1,
        "min_isr": 2,
    },
    "reject.authorization": {
        **WHO,
        "operation": "WRITE",
        "resource": "Topic:orders",
        "api": "Produce",
        "rule": "no ACL matches",
    },
    "reject.connection": {**WHO, "listener": "PLAINTEXT", "reason": "a reason"},
    "log.recovered": LOG,
    "segment.deleted": LOG,
    "compaction.failed": LOG,
    "directory.offline": {**LOG, "partitions": 4},
    "directory.full": LOG,
    "controller.elected": {"epoch": 5},
    "controller.resigned": {"epoch": 5},
    "role.refused": {"request": "LeaderAndIsr", "controller": 1, "epoch": 4, "known": 5},
    "session.lost": {"epoch": 5},
    "session.back": {"epoch": 6, "took_ms": 4_000},
    "loop.stall": {"ms": 480, "used_ms": 30, "what": "Produce", "step_ms": 470},
    "transaction.aborted": {
        "open_ms": 61_000,
        "timeout_ms": 60_000,
        "partitions": 2,
        "producer_id": 4_001,
        "epoch": 3,
    },
    "config.changed": CHANGE,
    "quota.changed": {**WHO, "entity": "user alice", "changes": "producer_byte_rate=5"},
    "acl.changed": CHANGE,
    "topic.created": CHANGE,
    "topic.deleted": CHANGE,
}


@pytest.mark.parametrize(
    ("event", "cause"),
    [(name, cause) for name, each in EVENTS.items() if each.kept for cause in each.causes],
)
def test_every_cause_has_a_sentence(event: str, cause: str) -> None:
    text = sentence(event, cause, DATA[event])
    assert not text.startswith(f"{event}:"), "a sentence, not a list of data"
    assert "{" not in text
    assert "None" not in text


@pytest.mark.parametrize("cause", REBALANCE_CAUSES)
def test_no_two_causes_of_a_rebalance_read_alike(cause: str) -> None:
    texts = [sentence("group.rebalance", each, MEMBER) for each in REBALANCE_CAUSES]
    assert texts.count(sentence("group.rebalance", cause, MEMBER)) == 1


def test_the_numbers_are_in_it() -> None:
    assert sentence("group.rebalance", "session-timeout", MEMBER) == (
        "rebalance began in generation 6: member m1 (10.0.0.7) sent no heartbeat for 10.0 s "
        "(session timeout 10.0 s)"
    )
    assert sentence("group.stable", "session-timeout", ROUND) == (
        "stable in generation 7 after 3.2 s (members rejoined in 3.1 s, assigned in 100 ms), with "
        "2 members instead of 3; begun by a session timeout; left: m1"
    )
    assert sentence("isr.shrink", "lag-time", ISR) == (
        "ISR 1, 2, 3 → 1, 2: broker 3 last had everything 30.4 s ago and is 481 records behind "
        "(replica.lag.time.max.ms 30.0 s)"
    )
    assert sentence("leader.elected", "broker-gone", LEADER) == (
        "broker 1 leads in epoch 7, because broker 3 is gone; ISR 1, 2"
    )
    assert sentence("throttle.begin", "produce", QUOTA) == (
        "throttled by producer_byte_rate of user alice: used 1.9 MiB/s, limit 976.6 KiB/s; its "
        "connection is not read for 1.2 s"
    )
    assert sentence("segment.deleted", "time", LOG) == (
        "broker 2 deleted 2 segments (2.0 KiB) below offset 17, because their newest records were "
        "older than retention.ms (60 min)"
    )


def test_a_stall_is_told_with_what_ran() -> None:
    numbers = {"ms": 480, "used_ms": 460, "step_ms": 470}
    stood = "its event loop stood still for 480 ms"
    assert sentence("loop.stall", "request", {**numbers, "what": "Produce"}) == (
        f"{stood}: a Produce request took 470 ms"
    )
    waited = {**numbers, "what": "retention", "used_ms": 9}
    assert sentence("loop.stall", "task", waited) == (
        f"{stood}: the task 'retention' took 470 ms, but had 9 ms of the processor: it waited for "
        "a disk, or the machine is overloaded"
    )
    collected = {**numbers, "what": "generation 2"}
    assert sentence("loop.stall", "garbage-collection", collected) == (
        f"{stood}: Python's garbage collection (generation 2) took 470 ms"
    )


def test_what_another_version_wrote_is_shown_as_it_stands() -> None:
    assert sentence("a.new", "cause", {"n": 1}) == "a.new: cause (n=1)"
    assert sentence("isr.shrink", "lag-time", {}) == "isr.shrink: lag-time"


@pytest.mark.parametrize(
    ("ms", "text"),
    [(5, "5 ms"), (1_500, "1.5 s"), (600_000, "10 min"), (9e6, "2.5 h"), (6e8, "6.9 days")],
)
def test_durations(ms: float, text: str) -> None:
    assert span(ms) == text


def test_sizes_and_times() -> None:
    assert [size(n) for n in (5, 2_048, 3 << 20, 1 << 50)] == [
        "5 B",
        "2.0 KiB",
        "3.0 MiB",
        "1024.0 TiB",
    ]
    assert moment(0) == "1970-01-01 00:00:00 UTC"
